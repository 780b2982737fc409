//! Both ends of a pass: rows of the embedding table in, logits out.

use crate::model::emitter::{Emitter, Presence, Result};
use crate::model::program::{Buf, Op, Part, Scope};
use crate::model::uses::Phase;

/// What differs between output heads.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Head {
    /// Factor of the logits.
    pub(crate) scale: Option<f32>,
    /// Soft cap of the logits.
    pub(crate) softcap: Option<f32>,
}

impl Emitter<'_> {
    /// Rows of `token_embd`, times `scale`, into the residual stream.
    pub(crate) fn embedding(&mut self, scale: f32) -> Result<()> {
        self.begin(Phase::Embed);
        let (width, n_vocab) = (self.hp.n_embd, self.hp.n_vocab);
        let table = self.tensors.require(TABLE, &[width, n_vocab])?;
        let use_index = self.add_use(&table, true);
        self.push(Op::Embed { use_index, ty: table.ty, width, scale });
        Ok(())
    }

    /// `output_norm` and the output head, tied to the embedding table where the file has no `output`.
    pub(crate) fn head(&mut self, head: &Head) -> Result<()> {
        self.begin(Phase::Head);
        self.scope = Scope::Head;
        let (width, n_vocab) = (self.hp.n_embd, self.hp.n_vocab);
        self.rms_norm("output_norm.weight", Buf::Residual, Buf::Hidden, width)?;
        let name = if self.tensors.has("output.weight") { "output.weight" } else { TABLE };
        let parts = [Part { output: Buf::Logits, n_rows: n_vocab }];
        self.matmul(name, Buf::Hidden, width, &parts)?;
        self.bias("output.bias", Buf::Logits, n_vocab, Presence::Optional)?;
        if let Some(factor) = head.scale {
            self.push(Op::Scale { buf: Buf::Logits, width: n_vocab, factor });
        }
        if let Some(cap) = head.softcap {
            self.push(Op::Softcap { buf: Buf::Logits, width: n_vocab, cap });
        }
        Ok(())
    }
}

const TABLE: &str = "token_embd.weight";
