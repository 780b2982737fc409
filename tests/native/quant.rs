//! Every number format against the values that ggml decodes, bit for bit.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test fails where it panics, and runs where there are files"
)]

use serde_json::Value;
use sluice::quant::{GgmlType, dequantize_row};

#[test]
fn every_format_decodes_to_the_golden_bits() {
    let index: Value = serde_json::from_slice(&fixture("index.json")).unwrap();
    for entry in index.as_array().unwrap() {
        let (name, number) =
            (entry["type"].as_str().unwrap(), |key: &str| entry[key].as_u64().unwrap());
        let ty = GgmlType::from_id(u32::try_from(number("ggml_type_id")).unwrap()).expect(name);
        assert_eq!(ty.name(), name);
        assert_eq!(ty.block_elements() as u64, number("block_elements"), "{name}");
        assert_eq!(ty.block_bytes() as u64, number("block_bytes"), "{name}");

        let stem = name.to_lowercase();
        let (blocks, want) = (fixture(&format!("{stem}.bin")), fixture(&format!("{stem}.f32")));
        let mut got = vec![f32::NAN; usize::try_from(number("n_elements")).unwrap()];
        dequantize_row(ty, &blocks, &mut got);
        for (i, (got, want)) in got.iter().zip(want.chunks_exact(4)).enumerate() {
            let want = f32::from_le_bytes(want.try_into().unwrap());
            assert_eq!(got.to_bits(), want.to_bits(), "{name}[{i}]: {got:e} for {want:e}");
        }
    }
    assert_eq!(index.as_array().unwrap().len(), 27, "every format but F32 has golden blocks");
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/dequant/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}
