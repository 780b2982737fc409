//! What holds for any text: nothing panics, ids lie in the vocabulary, and byte-level vocabularies and those with tokens
//! for bytes give the text back.

use sluice::gguf::Value;
use sluice::tokenizer::{Detokenizer, Tokenizer};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::fixtures::{GEMMA3, PRETOK, QWEN2, SMOLLM2};

#[wasm_bindgen_test(unsupported = test)]
fn texts_come_back() {
    for fixture in [&SMOLLM2, &QWEN2, &GEMMA3] {
        let tokenizer = fixture.tokenizer();
        let (markers, spelled) = (markers(&tokenizer), spelled_bytes(&tokenizer));
        let mut random = Random(7);
        for _ in 0..N_TEXTS {
            let mut text = random_text(&mut random, &markers);
            text.retain(|c| comes_back(c, &spelled));
            for parse_special in [false, true] {
                let ids = tokenizer.encode(&text, false, parse_special).unwrap();
                assert!(
                    ids.iter().all(|id| (*id as usize) < tokenizer.n_vocab()),
                    "{}: {text:?}",
                    fixture.name
                );
                let decoded = tokenizer.decode(&ids, true);
                assert_eq!(String::from_utf8_lossy(&decoded), text, "{}", fixture.name);
                assert_eq!(streamed(&tokenizer, &ids), text, "{}: one by one", fixture.name);
            }
        }
    }
}

#[wasm_bindgen_test(unsupported = test)]
fn no_rule_loses_a_byte() {
    let mut metadata = PRETOK.metadata();
    let golden = PRETOK.cases();
    for group in golden["groups"].as_array().unwrap() {
        for pre in group["pre"].as_array().unwrap() {
            let pre = pre.as_str().unwrap();
            metadata.insert("tokenizer.ggml.pre", Value::String(pre.as_bytes().into()));
            let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
            let mut random = Random(11);
            for _ in 0..N_TEXTS / 20 {
                let text = random_text(&mut random, &[]);
                let ids = tokenizer.encode(&text, false, true).unwrap();
                let decoded = tokenizer.decode(&ids, true);
                assert_eq!(String::from_utf8_lossy(&decoded), text, "{pre}");
            }
        }
    }
}

#[wasm_bindgen_test(unsupported = test)]
fn any_ids_can_be_decoded() {
    for fixture in [&SMOLLM2, &QWEN2, &GEMMA3] {
        let tokenizer = fixture.tokenizer();
        let n_vocab = u32::try_from(tokenizer.n_vocab()).unwrap();
        let mut random = Random(13);
        for show_special in [false, true] {
            let ids: Vec<u32> = (0..5000).map(|_| random.below(n_vocab + 9)).collect();
            let mut detokenizer = Detokenizer::new(&tokenizer, show_special);
            let mut text = String::new();
            for id in &ids {
                text += detokenizer.push(&tokenizer, *id);
            }
            text += detokenizer.flush();
            let bytes = tokenizer.decode(&ids, show_special);
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{}", fixture.name);
        }
    }
}

fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut detokenizer = Detokenizer::new(tokenizer, true);
    let mut text = String::new();
    for id in ids {
        text += detokenizer.push(tokenizer, *id);
    }
    text + detokenizer.flush()
}

/// Whether a vocabulary with tokens for these bytes can spell `c`. U+2581 is the spelling of a space in some.
fn comes_back(c: char, spelled: &[bool; 256]) -> bool {
    c != '\u{2581}' && c.encode_utf8(&mut [0; 4]).bytes().all(|byte| spelled[byte as usize])
}

/// Which bytes are tokens: SmolLM2 has none for the bytes that begin rare planes.
fn spelled_bytes(tokenizer: &Tokenizer) -> [bool; 256] {
    let mut spelled = [false; 256];
    for id in (0..).take(tokenizer.n_vocab()) {
        if let [byte] = tokenizer.token_bytes(id)[..] {
            spelled[byte as usize] = true;
        }
    }
    spelled
}

/// Texts of some special tokens.
fn markers(tokenizer: &Tokenizer) -> Vec<String> {
    let control = (0..).take(tokenizer.n_vocab()).filter(|id| tokenizer.is_control(*id)).take(20);
    control.map(|id| String::from_utf8(tokenizer.token_bytes(id)).unwrap()).collect()
}

/// Pieces that rules treat apart, any character, and `markers`.
fn random_text(random: &mut Random, markers: &[String]) -> String {
    let mut text = String::new();
    for _ in 0..random.below(40) {
        match random.below(8) {
            0..4 => text += random.of(PIECES),
            4 => text.extend(char::from_u32(random.below(0x11_0000))),
            5 => text.extend(char::from_u32(random.below(0x3000))),
            6 if !markers.is_empty() => text += random.of(markers),
            _ => text.push(char::from(u8::try_from(random.below(128)).unwrap())),
        }
    }
    text
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((u128::from(mixed) * u128::from(n)) >> 64).unwrap()
    }

    fn of<'a, T: AsRef<str>>(&mut self, list: &'a [T]) -> &'a str {
        list[self.below(u32::try_from(list.len()).unwrap()) as usize].as_ref()
    }
}

const N_TEXTS: usize = 2000;

const PIECES: &[&str] = &[
    " ",
    "  ",
    "    ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "word",
    "Word",
    "WORD",
    "'s",
    "'LL",
    "’re",
    "1",
    "2024",
    "٣٤",
    "½",
    ".",
    "...",
    "!?",
    "://",
    "$",
    "_",
    "é",
    "e\u{301}",
    "天气",
    "ひらカナ",
    "한국어",
    "हिन्दी",
    "ไทย",
    "мир",
    "😀",
    "👩\u{200d}🚀",
    "\0",
    "\u{200b}",
    "\u{fffd}",
    "\u{fffe}",
    "<sentinel:4>",
    "IMGIMGABZ",
];
