//! Tensors that are missing, too many, of the wrong shape or format, or not where the directory says.

use sluice::gguf::Value;
use sluice::quant::GgmlType;

use super::{Case, refuse_all};

#[test]
fn each_is_refused_and_the_next_open_works() {
    refuse_all(CASES);
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "a tensor that is missing",
        code: "invalid_model",
        says: &["tensor blk.1.ffn_gate.weight is missing"],
        spoil: |a| a.edit(|d| d.lose("blk.1.ffn_gate.weight")),
    },
    Case {
        what: "no embedding",
        code: "invalid_model",
        says: &["tensor token_embd.weight is missing"],
        spoil: |a| a.edit(|d| d.lose("token_embd.weight")),
    },
    Case {
        what: "no tensors at all",
        code: "invalid_model",
        says: &["tensor token_embd.weight is missing"],
        spoil: |a| a.edit(|d| d.tensors.clear()),
    },
    Case {
        what: "fewer layers than declared",
        code: "invalid_model",
        says: &["tensor blk.3.", "is missing"],
        spoil: |a| a.set("llama.block_count", Value::U32(4)),
    },
    Case {
        what: "more layers than declared",
        code: "unsupported_model",
        says: &["tensor blk.2.", "not part of architecture 'llama'"],
        spoil: |a| a.set("llama.block_count", Value::U32(2)),
    },
    Case {
        what: "a tensor that the architecture does not have",
        code: "unsupported_model",
        says: &["blk.0.attn_gate.weight", "not part of architecture 'llama'"],
        spoil: |a| {
            a.edit(|d| {
                let data = d.tensor("blk.0.attn_q.weight").data.clone();
                let name = "blk.0.attn_gate.weight".to_owned();
                let (ty, shape) = (GgmlType::F32, vec![64, 64]);
                d.tensors.push(super::attempt::DraftTensor { name, ty, shape, data });
            });
        },
    },
    Case {
        what: "a vector of the wrong length",
        code: "invalid_model",
        says: &["blk.0.attn_norm.weight", "[63]", "expected [64]"],
        spoil: |a| {
            a.edit(|d| d.tensor("blk.0.attn_norm.weight").become_zeros(GgmlType::F32, &[63]));
        },
    },
    Case {
        what: "a matrix lying on its side",
        code: "invalid_model",
        says: &["blk.0.attn_k.weight", "[32, 64]", "expected [64, 32]"],
        spoil: |a| a.edit(|d| d.tensor("blk.0.attn_k.weight").shape = vec![32, 64]),
    },
    Case {
        what: "a matrix with too few rows",
        code: "invalid_model",
        says: &["blk.2.ffn_up.weight", "[64, 95]", "expected [64, 96]"],
        spoil: |a| {
            a.edit(|d| d.tensor("blk.2.ffn_up.weight").become_zeros(GgmlType::F32, &[64, 95]));
        },
    },
    Case {
        what: "a matrix with a dimension too many",
        code: "invalid_model",
        says: &["blk.2.ffn_up.weight", "[64, 48, 2]", "expected [64, 96]"],
        spoil: |a| a.edit(|d| d.tensor("blk.2.ffn_up.weight").shape = vec![64, 48, 2]),
    },
    Case {
        what: "an embedding of another width",
        code: "invalid_model",
        says: &["token_embd.weight", "[64, 96]", "expected [128, 96]"],
        spoil: |a| a.set("llama.embedding_length", Value::U32(128)),
    },
    Case {
        what: "a number format that is not read",
        code: "unsupported_model",
        says: &["blk.0.ffn_up.weight", "number format 99", "does not read"],
        spoil: |a| a.fixtures(&["parser/bad/ggml-type-99.gguf"]),
    },
    Case {
        what: "weights of integers",
        code: "unsupported_model",
        says: &["blk.0.ffn_up.weight", "number format 26"],
        spoil: |a| a.fixtures(&["parser/bad/weight-is-i32.gguf"]),
    },
    Case {
        what: "rows that are no whole blocks",
        code: "invalid_model",
        says: &["'blk.0.ffn_up.weight'", "no multiple of Q4_0's block of 32"],
        spoil: |a| a.fixtures(&["parser/bad/row-not-block.gguf"]),
    },
    Case {
        what: "a dimension of zero",
        code: "invalid_model",
        says: &["'blk.0.ffn_up.weight' has a dimension of 0"],
        spoil: |a| a.fixtures(&["parser/bad/dims-zero.gguf"]),
    },
    Case {
        what: "dimensions whose product overflows",
        code: "invalid_model",
        says: &["'blk.0.ffn_up.weight' has impossible dimensions"],
        spoil: |a| a.fixtures(&["parser/bad/dims-wrap4.gguf"]),
    },
    Case {
        what: "more than four dimensions",
        code: "invalid_model",
        says: &["'blk.0.ffn_up.weight' has 5 dimensions, more than 4"],
        spoil: |a| a.fixtures(&["parser/bad/n-dims-5.gguf"]),
    },
    Case {
        what: "a tensor without a name",
        code: "invalid_model",
        says: &["GGUF tensor 13 of 13", "no name"],
        spoil: |a| a.fixtures(&["parser/bad/tensor-name-empty.gguf"]),
    },
    Case {
        what: "a tensor that stands there twice",
        code: "invalid_model",
        says: &["'output.weight' stands in the directory twice"],
        spoil: |a| a.fixtures(&["parser/bad/duplicate-tensor.gguf"]),
    },
    Case {
        what: "tensors that overlap",
        code: "invalid_model",
        says: &["'blk.0.attn_q.weight' overlaps with tensor 'blk.0.ffn_norm.weight'"],
        spoil: |a| a.fixtures(&["parser/bad/overlap-partial.gguf"]),
    },
    Case {
        what: "a tensor that is not aligned",
        code: "invalid_model",
        says: &["'blk.0.attn_norm.weight'", "not on a multiple of 32 bytes"],
        spoil: |a| a.fixtures(&["parser/bad/offset-unaligned.gguf"]),
    },
    Case {
        what: "an offset that overflows",
        code: "invalid_model",
        says: &["'blk.0.attn_norm.weight'", "impossible offset"],
        spoil: |a| a.fixtures(&["parser/bad/offset-overflow.gguf"]),
    },
    Case {
        what: "a norm with a value that is not a number",
        code: "invalid_model",
        says: &["blk.1.ffn_norm.weight holds NaN at index 5", "finite"],
        spoil: |a| {
            a.edit(|d| {
                d.tensor("blk.1.ffn_norm.weight").data[20..24]
                    .copy_from_slice(&f32::NAN.to_le_bytes());
            });
        },
    },
    Case {
        what: "a norm with an infinite value",
        code: "invalid_model",
        says: &["output_norm.weight holds inf at index 0", "finite"],
        spoil: |a| {
            a.edit(|d| {
                d.tensor("output_norm.weight").data[..4]
                    .copy_from_slice(&f32::INFINITY.to_le_bytes());
            });
        },
    },
];
