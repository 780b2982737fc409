//! Every rule by name, on a vocabulary whose ids show where a text was cut.

use sluice::gguf::Value;
use sluice::tokenizer::Tokenizer;
use wasm_bindgen_test::wasm_bindgen_test;

use crate::fixtures::{PRETOK, ids};

#[wasm_bindgen_test(unsupported = test)]
fn every_rule_cuts_where_llama_cpp_does() {
    let mut metadata = PRETOK.metadata();
    let golden = PRETOK.cases();
    let texts: Vec<&str> =
        golden["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let groups = golden["groups"].as_array().unwrap();
    let mut wrong = Vec::new();
    for group in groups {
        for pre in group["pre"].as_array().unwrap() {
            let pre = pre.as_str().unwrap();
            metadata.insert("tokenizer.ggml.pre", Value::String(pre.as_bytes().into()));
            let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
            for (text, wanted) in texts.iter().zip(group["ids"].as_array().unwrap()) {
                let found = tokenizer.encode(text, false, false).unwrap();
                if found != ids(wanted) {
                    wrong.push(format!(
                        "{pre}: {text:?}: {:?}",
                        pieces(&tokenizer, &found, &ids(wanted))
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of the texts are cut elsewhere:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(groups.len(), 29, "groups of names");
}

fn pieces(tokenizer: &Tokenizer, found: &[u32], wanted: &[u32]) -> [Vec<String>; 2] {
    let text = |id: &u32| String::from_utf8_lossy(&tokenizer.token_bytes(*id)).into_owned();
    [found, wanted].map(|ids| ids.iter().map(text).collect())
}
