//! Residency `f32`: the same rows, dequantised, through slots and residents of any size.

use std::rc::Rc;

use sluice::loader::{Loader, LoaderConfig, dequantized_directory};
use sluice::model::Use;
use sluice::quant::{GgmlType, dequantize_row};
use sluice::source::{Delivery, FaultySource};

use super::deadline::in_time;
use super::fake_model::FakeModel;

/// The model as its reader sees it: uses and expected bytes in f32. Places in the file stay those of the stored one.
fn dequantized(model: &FakeModel) -> FakeModel {
    let mut plain = FakeModel::default();
    let tensors = dequantized_directory(&model.header, &model.uses).unwrap();
    for (stored, entry) in model.header.tensors.iter().zip(tensors) {
        assert_eq!(entry.offset, stored.offset, "the place is that of the stored tensor");
        let mut values = vec![0.0; stored.n_cols() as usize];
        let start = stored.offset as usize;
        let bytes = &model.files[0][start..start + stored.n_bytes as usize];
        let mut file = plain.files.pop().unwrap_or_default();
        let offset = file.len() as u64;
        for row in bytes.chunks(stored.n_bytes as usize / stored.n_rows() as usize) {
            dequantize_row(GgmlType::Q8_0, row, &mut values);
            file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        }
        plain.files.push(file);
        plain.header.tensors.push(sluice::gguf::TensorEntry { offset, ..entry });
    }
    plain.uses =
        model.uses.iter().map(|u| Use { row_bytes: u.row_bytes / 34 * 128, ..*u }).collect();
    plain
}

#[test]
fn rows_are_those_of_the_scalar_definition() {
    let model = FakeModel::small();
    let plain = dequantized(&model);
    let head = plain.uses.last().unwrap().tensor;
    let some = [plain.run(head, 10, 40), plain.run(3, 5, 1), plain.run(4, 0, 16)];
    for (n_slots, slot_bytes, residents) in [
        (1, plain.longest_row(), &[][..]),
        (3, 1300, &[][..]),
        (2, 1 << 20, &some[..]),
        (0, 0, &plain.all_resident()[..]),
    ] {
        let plan = plain.plan(n_slots, slot_bytes, residents);
        let delivery = Delivery::Shuffled { seed: slot_bytes };
        let source = Rc::new(FaultySource::new(model.files.clone(), delivery, &[]));
        let config = LoaderConfig::default();
        let mut loader = Loader::new(&model.header, &plain.uses, &plan, source, config).unwrap();
        for _ in 0..3 {
            in_time(plain.pass(&mut loader, true, &[5, 96, 5])).unwrap();
        }
    }
}
