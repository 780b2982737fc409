//! What a tokenizer holds is what it says, and decoding takes nothing.

use std::io::Read;
use std::path::PathBuf;

use sluice::gguf::{Array, Header, Metadata, Value};
use sluice::runtime::StopFilter;
use sluice::tokenizer::{Detokenizer, Tokenizer};

use crate::allocations::measure;

fn metadata(name: &str) -> Metadata {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vocab").join(name);
    let file = std::fs::File::open(path.with_extension("vocab.gguf.gz")).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    Header::parse(&bytes).unwrap().metadata
}

#[test]
fn memory_bytes_is_what_is_held() {
    for name in ["smollm2", "qwen2", "gemma3", "pretok"] {
        let metadata = metadata(name);
        let (tokenizer, allocated) =
            measure(|| Box::new(Tokenizer::from_metadata(&metadata).unwrap()));
        assert_eq!(tokenizer.memory_bytes(), allocated.live_bytes, "{name}");
    }
}

#[test]
fn gemma_opens_in_little_more_than_its_arrays() {
    let mut metadata = metadata("gemma3");
    let (tokenizer, allocated) = measure(|| Tokenizer::take_from(&mut metadata).unwrap());
    assert_eq!(tokenizer.n_vocab(), 262_144);
    assert!(tokenizer.memory_bytes() < 7 << 20, "{} bytes", tokenizer.memory_bytes());
    assert!(allocated.peak_bytes < 2 << 20, "{} bytes beside the arrays", allocated.peak_bytes);
}

#[test]
fn encoding_needs_a_bounded_multiple_of_the_text() {
    for name in ["smollm2", "gemma3"] {
        let tokenizer = Tokenizer::from_metadata(&metadata(name)).unwrap();
        for repeated in ["a", " ", "\n", "é", "天", "<", "word "] {
            let text = repeated.repeat(300_000 / repeated.len());
            let (ids, allocated) = measure(|| tokenizer.encode(&text, true, true).unwrap());
            let per_byte = allocated.peak_bytes / text.len();
            assert!(
                per_byte <= 50,
                "{name}: {per_byte} bytes a byte of {repeated:?} ({} ids)",
                ids.len()
            );
        }
    }
}

#[test]
fn marks_are_decoded_and_held_back_without_allocating() {
    let strings = |texts: &[&str]| Value::Array(Array::strings(texts));
    for n_unknown in [1, 80, 2000] {
        let mut m = Metadata::default();
        m.insert("tokenizer.ggml.model", Value::String(b"gpt2".as_slice().into()));
        m.insert("tokenizer.ggml.pre", Value::String(b"gpt-2".as_slice().into()));
        m.insert("tokenizer.ggml.tokens", strings(&["a", "b", "ab", &"｜".repeat(n_unknown)]));
        m.insert("tokenizer.ggml.merges", strings(&["a b"]));
        let tokenizer = Tokenizer::from_metadata(&m).unwrap();
        let mut detokenizer = Detokenizer::new(&tokenizer, true);
        let text_bytes = Detokenizer::max_text_bytes(&tokenizer);
        let mut stop = StopFilter::new(&["]x".to_owned()], text_bytes);
        let (n_bytes, allocated) = measure(|| {
            let shown = [3, 3, 0].map(|id| stop.push(detokenizer.push(&tokenizer, id)).0.len());
            shown.iter().sum::<usize>()
        });
        assert!(n_bytes > 2 * n_unknown * "[UNK_BYTE_0xefbd9c]".len(), "{n_bytes} bytes of text");
        assert_eq!(allocated.n_allocations, 0, "{n_unknown} characters");
    }
}

#[test]
fn decoding_allocates_nothing() {
    for name in ["smollm2", "gemma3"] {
        let tokenizer = Tokenizer::from_metadata(&metadata(name)).unwrap();
        let ids: Vec<u32> = (0..u32::try_from(tokenizer.n_vocab()).unwrap()).collect();
        let mut detokenizer = Detokenizer::new(&tokenizer, true);
        let (n_bytes, allocated) = measure(|| {
            let n_bytes: usize = ids.iter().map(|id| detokenizer.push(&tokenizer, *id).len()).sum();
            n_bytes + detokenizer.flush().len()
        });
        assert!(n_bytes > ids.len(), "{name}: {n_bytes} bytes of text");
        assert_eq!(allocated.n_allocations, 0, "{name}");
    }
}
