//! Weights that are not finite: no token is ever drawn from what they make, in either precision and at either end of the
//! model, be it one value or the scale of one block.

use sluice::model::KvType;
use sluice::runtime::{OpenConfig, Precision, Prompt};

use super::attempt::{Attempt, Draft, answer, greedy};

/// A fixture, a tensor, and the bytes that are written at an offset of its data.
struct Spoilt {
    model: &'static str,
    tensor: &'static str,
    at: usize,
    bytes: &'static [u8],
}

const NAN: &[u8] = &[0, 0, 0xC0, 0x7F];
const INFINITY: &[u8] = &[0, 0, 0x80, 0x7F];
const HALF_NAN: &[u8] = &[0, 0x7E];
const HALF_INFINITY: &[u8] = &[0, 0x7C];

const fn spoilt(
    model: &'static str,
    tensor: &'static str,
    at: usize,
    bytes: &'static [u8],
) -> Spoilt {
    Spoilt { model, tensor, at, bytes }
}

const LLAMA: &str = "models/llama-gqa.gguf";
const MOE: &str = "models/qwen3moe.gguf";
const Q4_0: &str = "quant/llama-q4_0.gguf";
const Q4_1: &str = "quant/llama-q4_1.gguf";
const Q8_0: &str = "quant/llama-q8_0.gguf";
const Q4_K: &str = "quant/llama-q4_k.gguf";
const Q6_K: &str = "quant/llama-q6_k.gguf";

/// Blocks are picked from the middle of a tensor.
const SPOILT: &[Spoilt] = &[
    // Single values, from the embedding of a token of the prompt to the head.
    spoilt(LLAMA, "token_embd.weight", 4 * 64 * 2, NAN),
    spoilt(LLAMA, "blk.0.attn_q.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.0.attn_k.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.1.attn_v.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.1.attn_output.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.2.ffn_gate.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.2.ffn_up.weight", 4 * 70, NAN),
    spoilt(LLAMA, "blk.2.ffn_down.weight", 4 * 100, NAN),
    spoilt(LLAMA, "output.weight", 4 * 64 * 90, NAN),
    spoilt(LLAMA, "output.weight", 4 * 64 * 90, INFINITY),
    spoilt(LLAMA, "blk.2.ffn_down.weight", 4 * 100, INFINITY),
    // A soft cap must not make a number of it.
    spoilt("models/gemma2.gguf", "token_embd.weight", 4 * 64 * 2, NAN),
    spoilt("models/gemma2.gguf", "blk.0.attn_k.weight", 4 * 70, NAN),
    spoilt("models/gemma3.gguf", "blk.0.attn_q.weight", 4 * 70, NAN),
    // Nor may the choice of experts.
    spoilt(MOE, "blk.0.ffn_gate_inp.weight", 4 * 3, NAN),
    // The scale of one block.
    spoilt(Q4_0, "blk.0.attn_q.weight", 18 * 9, HALF_NAN),
    spoilt(Q4_0, "blk.0.attn_k.weight", 18 * 9, HALF_NAN),
    spoilt(Q4_0, "blk.0.attn_v.weight", 18 * 9, HALF_NAN),
    spoilt(Q4_0, "blk.1.ffn_gate.weight", 18 * 9, HALF_NAN),
    spoilt(Q4_0, "blk.1.ffn_down.weight", 18 * 9, HALF_NAN),
    spoilt(Q4_0, "token_embd.weight", 18 * 4 * 100, HALF_NAN),
    spoilt(Q4_0, "blk.1.ffn_down.weight", 18 * 9, HALF_INFINITY),
    spoilt(Q4_1, "blk.1.ffn_down.weight", 20 * 9, HALF_NAN),
    spoilt(Q4_1, "blk.1.ffn_down.weight", 20 * 9 + 2, HALF_NAN),
    spoilt(Q8_0, "blk.1.attn_output.weight", 34 * 9, HALF_NAN),
    spoilt(Q4_K, "blk.1.ffn_down.weight", 144 * 9, HALF_NAN),
    spoilt(Q4_K, "blk.1.ffn_down.weight", 144 * 9 + 2, HALF_NAN),
    spoilt(Q6_K, "blk.1.ffn_down.weight", 210 * 9 + 208, HALF_NAN),
];

const KV_TYPES: [Option<KvType>; 2] = [None, Some(KvType::Q8_0)];

#[test]
fn weights_that_are_not_finite_end_in_an_error_that_says_so() {
    for Spoilt { model, tensor, at, bytes } in SPOILT {
        for precision in [Precision::Fast, Precision::Exact] {
            for kv in KV_TYPES {
                let mut attempt = Attempt::sound();
                attempt.fixtures(&[model]);
                attempt.config = OpenConfig { precision, kv, ..attempt.config };
                let change = |d: &mut Draft| {
                    d.tensor(tensor).data[*at..at + bytes.len()].copy_from_slice(bytes);
                };
                attempt.edit(change);
                let what = format!("{model}, {tensor}, {bytes:?} at {at}, {precision:?}, {kv:?}");
                let mut engine = match attempt.open() {
                    Ok(engine) => engine,
                    // Heads of 16 values are no whole blocks of q8_0.
                    Err(error) if kv.is_some() && error.code() == "invalid_option" => continue,
                    Err(error) => panic!("{what}: {error}"),
                };
                let prompt = Prompt::Ids(vec![1, 2, 3]);
                for _ in 0..2 {
                    let error = answer(&mut engine, &prompt, &greedy())
                        .err()
                        .unwrap_or_else(|| panic!("{what}: an answer came of it"));
                    assert_eq!(error.code(), "invalid_model", "{what}: {error}");
                    assert!(error.message().contains("not finite"), "{what}: {error}");
                    assert!(error.message().contains("the logit of token"), "{what}: {error}");
                }
            }
        }
    }
    Attempt::sound().assert_works("after weights that are not finite");
}
