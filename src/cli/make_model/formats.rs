//! Which format each tensor has: the mixes of llama.cpp's quantisation, with its exceptions by role and layer.

use sluice::error::Result;
use sluice::quant::GgmlType;

use super::shapes::Shape;
use super::{Tensor, misfit};

/// A mix of formats, by llama.cpp's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mix {
    /// 8 bits throughout
    #[value(name = "q8_0")]
    Q8_0,
    /// 4 bits in blocks of 32, the head in 6
    #[value(name = "q4_0")]
    Q4_0,
    /// 4 bits with offsets in blocks of 32, the head in 6
    #[value(name = "q4_1")]
    Q4_1,
    /// 4 bits in blocks of 256, some layers' tensors and the head in 6
    #[value(name = "q4_k_m")]
    Q4KM,
}

/// What a tensor is, as far as its format and its values depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Norm,
    RopeFactors(f32),
    Embedding,
    Head,
    /// The value projection of a layer.
    Values(u32),
    /// The last projection of a layer's feed-forward network.
    FfnDown(u32),
    Weight,
}

impl Mix {
    /// llama.cpp's number of the mix, as files carry it.
    pub(super) fn file_type(self) -> u32 {
        match self {
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q8_0 => 7,
            Self::Q4KM => 15,
        }
    }

    fn of(self, shape: &Shape, role: Role) -> GgmlType {
        let most = match self {
            Self::Q8_0 => GgmlType::Q8_0,
            Self::Q4_0 => GgmlType::Q4_0,
            Self::Q4_1 => GgmlType::Q4_1,
            Self::Q4KM => GgmlType::Q4_K,
        };
        match role {
            Role::Norm | Role::RopeFactors(_) => GgmlType::F32,
            _ if self == Self::Q8_0 => most,
            Role::Head => GgmlType::Q6_K,
            Role::Embedding if shape.tied => GgmlType::Q6_K,
            Role::Values(layer) | Role::FfnDown(layer)
                if self == Self::Q4KM && more_bits(layer, shape.n_layer) =>
            {
                GgmlType::Q6_K
            }
            Role::Values(_) if self == Self::Q4KM && shape.wide_values => GgmlType::Q5_K,
            _ => most,
        }
    }
}

/// All tensors of the file with their formats.
pub(super) fn typed(shape: &Shape, mix: Mix) -> Result<Vec<Tensor>> {
    let typed = |(name, dims, role): (String, Vec<u64>, Role)| {
        let ty = whole_blocks(mix.of(shape, role), dims[0]);
        if ty.row_bytes(dims[0]).is_none() {
            return Err(misfit(&name, ty, dims[0]));
        }
        let n_dims = dims.len();
        Ok(Tensor { name, ty, shape: [dims[0], dims.get(1).copied().unwrap_or(1)], n_dims, role })
    };
    shape.tensors().into_iter().map(typed).collect()
}

/// Layers whose values and down projections get more bits: the first and last eighth, and every third between.
fn more_bits(layer: u32, n_layer: u32) -> bool {
    let eighth = n_layer / 8;
    layer < eighth || layer >= 7 * n_layer / 8 || (layer - eighth) % 3 == 2
}

/// `ty`, or the format of blocks of 32 that stands in for it where rows are no whole blocks of 256.
fn whole_blocks(ty: GgmlType, n_cols: u64) -> GgmlType {
    match ty {
        _ if n_cols.is_multiple_of(ty.block_elements() as u64) => ty,
        GgmlType::Q4_K => GgmlType::Q5_0,
        GgmlType::Q5_K => GgmlType::Q5_1,
        GgmlType::Q6_K => GgmlType::Q8_0,
        other => other,
    }
}
