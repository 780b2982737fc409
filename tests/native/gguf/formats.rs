//! What is written is read again, as GGUF and as LLMW, with the same facts.

use std::path::Path;
use std::process::Command;

use sluice::error::Result;
use sluice::gguf::{Array, Format, Header, Metadata, ModelWriter, TensorSpec, TensorType, Value};
use sluice::quant::GgmlType;

use super::{fixture, read};

fn written(
    format: Format,
    metadata: &Metadata,
    tensors: &[TensorSpec<'_>],
    data: &[u8],
) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut writer = ModelWriter::new(format, metadata, tensors, |bytes: &[u8]| {
        file.extend_from_slice(bytes);
        Ok(())
    })?;
    for piece in data.chunks(37) {
        writer.write(piece)?;
    }
    writer.finish()?;
    Ok(file)
}

fn metadata() -> Metadata {
    let mut m = Metadata::default();
    let text = |s: &str| Value::String(s.as_bytes().into());
    m.insert("general.architecture", text("llama"));
    m.insert("general.name", text("toy"));
    m.insert("llama.block_count", Value::U32(2));
    m.insert("llama.embedding_length", Value::U32(32));
    m.insert("llama.attention.head_count", Value::U32(2));
    m.insert("llama.attention.head_count_kv", Value::U32(1));
    m.insert("llama.attention.key_length", Value::U32(16));
    m.insert("llama.attention.value_length", Value::U32(16));
    m.insert("llama.feed_forward_length", Value::U32(64));
    m.insert("llama.context_length", Value::U32(128));
    m.insert("llama.vocab_size", Value::U32(48));
    m.insert("llama.rope.freq_base", Value::F32(10000.0));
    m.insert("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5));
    m.insert("tokenizer.ggml.model", text("none"));
    m
}

const TENSORS: [TensorSpec<'_>; 3] = [
    TensorSpec { name: "token_embd.weight", ty: GgmlType::Q8_0, shape: &[32, 48] },
    TensorSpec { name: "output_norm.weight", ty: GgmlType::F32, shape: &[33] },
    TensorSpec { name: "blk.0.attn_q.weight", ty: GgmlType::F16, shape: &[32, 3, 2] },
];

fn data() -> Vec<u8> {
    let n: u64 = TENSORS.iter().map(|t| t.n_bytes().unwrap()).sum();
    (0..n).map(|i| u8::try_from(i % 251).unwrap()).collect()
}

#[test]
fn both_formats_carry_the_same_facts_and_bytes() {
    let data = data();
    let gguf = written(Format::Gguf, &metadata(), &TENSORS, &data).unwrap();
    let llmw = written(Format::Llmw, &metadata(), &TENSORS, &data).unwrap();
    assert_eq!((&gguf[..4], &llmw[..4]), (&b"GGUF"[..], &b"LLMW"[..]));
    let (a, b) = (Header::parse(&gguf).unwrap(), Header::parse(&llmw).unwrap());
    assert_eq!(a.metadata, metadata());
    assert_eq!(b.metadata, metadata());
    let mut read = 0;
    for (a, b) in a.tensors.iter().zip(&b.tensors) {
        assert_eq!((&a.name, a.ty, &a.shape, a.n_bytes), (&b.name, b.ty, &b.shape, b.n_bytes));
        let n = usize::try_from(a.n_bytes).unwrap();
        for (file, offset, alignment) in [(&gguf, a.offset, 32), (&llmw, b.offset, 64)] {
            assert_eq!(offset % alignment, 0);
            let start = usize::try_from(offset).unwrap();
            assert_eq!(file[start..start + n], data[read..read + n], "{}", a.name);
        }
        read += n;
    }
    assert_eq!(a.tensors.len(), TENSORS.len());
}

#[test]
fn a_model_in_both_formats_gives_the_same_logits() {
    let folder = std::env::temp_dir().join(format!("sluice-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["models/llama-gqa", "models/llama-yarn", "quant/llama-q4_k"] {
        let gguf = fixture(&format!("{name}.gguf"));
        let llmw = folder.join("model.llmw");
        std::fs::write(&llmw, converted(&std::fs::read(&gguf).unwrap())).unwrap();
        for precision in ["fast", "exact"] {
            let [of_gguf, of_llmw] = [&gguf, &llmw].map(|model| {
                let out = folder.join("logits.f32");
                let status = Command::new(env!("CARGO_BIN_EXE_sluice"))
                    .args(["logits", "--ids", "1,5,9,2", "--precision", precision])
                    .args([model.as_path(), Path::new("--out"), &out])
                    .status()
                    .unwrap();
                assert!(status.success(), "{}", model.display());
                std::fs::read(&out).unwrap()
            });
            assert!(of_gguf == of_llmw && !of_gguf.is_empty(), "{name} {precision}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The model of a GGUF file as LLMW, without the keys that a plain file of that format lacks.
fn converted(gguf: &[u8]) -> Vec<u8> {
    let mut header = Header::parse(gguf).unwrap();
    for key in ["general.name", "llama.vocab_size", "llama.rope.dimension_count"] {
        assert!(header.metadata.remove(key).is_some(), "{key}");
    }
    let mut data = Vec::new();
    let mut tensors = Vec::new();
    for tensor in &header.tensors {
        let TensorType::Known(ty) = tensor.ty else { panic!("{}", tensor.name) };
        tensors.push(TensorSpec { name: &tensor.name, ty, shape: &tensor.shape });
        let place =
            [tensor.offset, tensor.offset + tensor.n_bytes].map(|at| usize::try_from(at).unwrap());
        data.extend_from_slice(&gguf[place[0]..place[1]]);
    }
    written(Format::Llmw, &header.metadata, &tensors, &data).unwrap()
}

#[test]
fn a_short_llmw_header_means_what_the_long_keys_mean() {
    let mut file = b"LLMW".to_vec();
    let text = |file: &mut Vec<u8>, s: &str| {
        file.extend(u32::try_from(s.len()).unwrap().to_le_bytes());
        file.extend(s.as_bytes());
    };
    file.extend([1u32, 4, 0].iter().flat_map(|n| n.to_le_bytes()));
    text(&mut file, "arch");
    file.push(2);
    text(&mut file, "llama");
    text(&mut file, "n_layers");
    file.push(0);
    file.extend(7i64.to_le_bytes());
    text(&mut file, "rms_eps");
    file.push(1);
    file.extend(1e-5f64.to_le_bytes());
    text(&mut file, "dim");
    file.push(0);
    file.extend((-1i64).to_le_bytes());
    let header = Header::parse(&file).unwrap();
    assert_eq!(header.metadata.require_u32("llama.block_count").unwrap(), 7);
    assert_eq!(
        header.metadata.require_f32("llama.attention.layer_norm_rms_epsilon").unwrap(),
        1e-5
    );
    assert!(
        header
            .metadata
            .require_u32("llama.embedding_length")
            .unwrap_err()
            .message()
            .contains("i64 -1")
    );
    for n in 0..file.len() {
        assert!(Header::parse(&file[..n]).is_err(), "cut to {n} bytes");
    }
}

#[test]
fn every_value_survives_being_written() {
    for file in ["all-value-types", "nested-arrays", "with-tokenizer", "align-64"] {
        let bytes = read(&format!("parser/ok/{file}.gguf"));
        let header = Header::parse(&bytes).unwrap();
        let again =
            Header::parse(&written(Format::Gguf, &header.metadata, &[], &[]).unwrap()).unwrap();
        // NaNs differ from themselves; their text does not.
        assert_eq!(format!("{:?}", again.metadata), format!("{:?}", header.metadata), "{file}");
    }
}

#[test]
fn a_writer_refuses_what_does_not_fit() {
    let mut m = metadata();
    m.insert("tokenizer.ggml.tokens", Value::Array(Array::strings(["a"])));
    assert!(
        written(Format::Llmw, &m, &TENSORS, &data())
            .unwrap_err()
            .message()
            .contains("tokenizer.ggml.tokens")
    );
    let wrong = [TensorSpec { name: "t", ty: GgmlType::Q4_K, shape: &[32] }];
    assert!(
        written(Format::Gguf, &metadata(), &wrong, &[])
            .unwrap_err()
            .message()
            .contains("'t' of type Q4_K")
    );
    assert!(
        written(Format::Gguf, &metadata(), &TENSORS, &data()[1..])
            .unwrap_err()
            .message()
            .contains("are written")
    );
    let mut more = data();
    more.push(0);
    assert!(
        written(Format::Gguf, &metadata(), &TENSORS, &more)
            .unwrap_err()
            .message()
            .contains("after the last")
    );
}
