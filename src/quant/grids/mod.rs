//! Tables of lattice points of the IQ formats, packed two bytes a point; one file each.

mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;

pub(super) use iq1_s::IQ1_S;
pub(super) use iq2_s::IQ2_S;
pub(super) use iq2_xs::IQ2_XS;
pub(super) use iq2_xxs::IQ2_XXS;
pub(super) use iq3_s::IQ3_S;
pub(super) use iq3_xxs::IQ3_XXS;
