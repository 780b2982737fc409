//! Every case of the three real vocabularies: ids in the four ways of encoding, text back, roles and ends.

use serde_json::Value;
use sluice::tokenizer::{Detokenizer, Tokenizer};
use wasm_bindgen_test::wasm_bindgen_test;

use crate::fixtures::{Fixture, GEMMA3, QWEN2, SMOLLM2, bytes_of_hex, ids};

#[wasm_bindgen_test(unsupported = test)]
fn smollm2_as_in_llama_cpp() {
    check(&SMOLLM2);
}

#[wasm_bindgen_test(unsupported = test)]
fn qwen2_as_in_llama_cpp() {
    check(&QWEN2);
}

#[wasm_bindgen_test(unsupported = test)]
fn gemma3_as_in_llama_cpp() {
    check(&GEMMA3);
}

fn check(fixture: &Fixture) {
    let (tokenizer, golden) = (fixture.tokenizer(), fixture.cases());
    check_facts(&tokenizer, &golden, fixture.name);
    let cases = golden["cases"].as_array().unwrap();
    for case in cases {
        check_case(&tokenizer, case, fixture.name);
    }
    for (id, hex) in golden["single_token_detok_hex"].as_object().unwrap() {
        let bytes = tokenizer.token_bytes(id.parse().unwrap());
        assert_eq!(bytes, bytes_of_hex(hex.as_str().unwrap()), "{}: token {id}", fixture.name);
    }
}

fn check_facts(tokenizer: &Tokenizer, golden: &Value, name: &str) {
    assert_eq!(tokenizer.n_vocab() as u64, golden["n_vocab"].as_u64().unwrap(), "{name}");
    assert_eq!(tokenizer.eog_ids(), ids(&golden["end_of_generation_ids"]), "{name}");
    let added = [tokenizer.add_bos(), tokenizer.add_eos(), tokenizer.add_sep()];
    assert_eq!(
        added,
        ["add_bos", "add_eos", "add_sep"].map(|key| golden[key].as_bool().unwrap()),
        "{name}"
    );
    let special = tokenizer.special_ids();
    let roles = [
        ("bos", special.bos),
        ("eos", special.eos),
        ("eot", special.eot),
        ("sep", special.sep),
        ("nl", special.nl),
        ("pad", special.pad),
    ];
    for (role, id) in roles {
        let wanted = golden["special_ids"][role].as_i64().unwrap();
        assert_eq!(id.map_or(-1, i64::from), wanted, "{name}: {role}");
    }
    let control: Vec<u32> =
        (0..).take(tokenizer.n_vocab()).filter(|id| tokenizer.is_control(*id)).collect();
    assert_eq!(control, ids(&golden["control_ids"]), "{name}");
}

fn check_case(tokenizer: &Tokenizer, case: &Value, name: &str) {
    let text = case["text"].as_str().unwrap();
    let encoded = |add_special, parse_special| {
        let found = tokenizer.encode(text, add_special, parse_special).unwrap();
        let key = format!("ids_special{}_parse{}", u8::from(add_special), u8::from(parse_special));
        assert_eq!(found, ids(&case[&key]), "{name}: {key} of {text:?}");
        found
    };
    encoded(false, false);
    encoded(true, false);
    let shown = tokenizer.decode(&encoded(false, true), true);
    assert_eq!(shown, wanted_bytes(&case["detok"]), "{name}: detok of {text:?}");
    let ids = encoded(true, true);
    let hidden = tokenizer.decode(&ids, false);
    assert_eq!(
        hidden,
        wanted_bytes(&case["detok_hide_special"]),
        "{name}: detok_hide_special of {text:?}"
    );

    let mut detokenizer = Detokenizer::new(tokenizer, false);
    let mut streamed = String::new();
    for id in ids {
        streamed += detokenizer.push(tokenizer, id);
    }
    streamed += detokenizer.flush();
    assert_eq!(streamed, String::from_utf8_lossy(&hidden), "{name}: {text:?} one by one");
}

fn wanted_bytes(value: &Value) -> Vec<u8> {
    match value["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => bytes_of_hex(value["hex"].as_str().unwrap()),
    }
}
