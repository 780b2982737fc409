//! Random faults in headers: whatever they say, the model is refused or priced, and nothing panics.

use sluice::gguf::{Array, Header, TensorType, Value};
use sluice::model::{Model, Shape};
use sluice::quant::GgmlType;

use super::bad_headers::{heads, set, text};
use super::driver::{EXACT, FAST, fixture};

#[test]
fn noise_in_a_header_never_panics() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let names = [
        "llama-gqa",
        "llama-moe",
        "llama-yarn",
        "gemma3",
        "phi3-longrope-long",
        "granite",
        "olmo2",
    ];
    let (mut n_accepted, n) = (0, 4000);
    for i in 0..n {
        let name = names[i % names.len()];
        let mut header = Header::parse(&fixture(&format!("models/{name}.gguf"))).unwrap();
        for _ in 0..=noise.below(2) {
            spoil(&mut header, &mut noise);
        }
        let Ok(model) = Model::new(&header, if i % 2 == 0 { &EXACT } else { &FAST }) else {
            continue;
        };
        n_accepted += 1;
        for n in [1, 7, u32::MAX] {
            let memory = model.memory(&Shape { n_ctx: n, n_batch: n, n_logits: n });
            assert!(memory.kv_bytes > 0 && memory.scratch_bytes > 0, "{name}: a price");
        }
    }
    assert!(n_accepted > n / 20 && n_accepted < n, "{n_accepted} of {n} were accepted");
}

/// One fault of any kind.
fn spoil(h: &mut Header, noise: &mut Noise) {
    let key = {
        let n = noise.below(h.metadata.len());
        h.metadata.iter().nth(n).unwrap().0.to_owned()
    };
    let tensor = noise.below(h.tensors.len());
    match noise.below(8) {
        0 => drop(h.metadata.remove(&key)),
        1..=3 => {
            let value = noise.value();
            set(h, &key, value);
        }
        4 => drop(h.tensors.swap_remove(tensor)),
        5 => {
            let dims = &mut h.tensors[tensor].shape;
            let dim = noise.below(dims.len());
            dims[dim] = noise.size();
        }
        6 => {
            let n = noise.below(6);
            h.tensors[tensor].shape = (0..n).map(|_| noise.size()).collect();
        }
        _ => {
            let id = u32::try_from(noise.below(45)).unwrap();
            h.tensors[tensor].ty =
                GgmlType::from_id(id).map_or(TensorType::Unknown(id), TensorType::Known);
        }
    }
}

/// A xorshift generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    fn size(&mut self) -> u64 {
        [0, 1, 2, 16, 63, 64, 1 << 16, 1 << 24, 1 << 31, 1 << 32, 1 << 63, u64::MAX][self.below(12)]
    }

    fn value(&mut self) -> Value {
        let size = self.size();
        let small = u32::try_from(size & 0xffff_ffff).unwrap();
        match self.below(10) {
            0..=3 => Value::U32(small),
            4 => Value::U64(size),
            5 => Value::I32(-1),
            6 => Value::F32([0.0, -1.0, 1e-38, 1e38, f32::NAN, f32::INFINITY, 0.5][self.below(7)]),
            7 => heads(&[small; 3]),
            8 => Value::Array(Array::Bool(vec![true, false, true])),
            _ => text(["none", "linear", "yarn", "longrope", "x", ""][self.below(6)]),
        }
    }
}
