//! A model that is nothing but rows: its header, its uses, its files, and a pass that takes every tile and checks every byte.

use std::rc::Rc;

use sluice::error::Result;
use sluice::gguf::{FilePart, Header, TensorEntry, TensorType};
use sluice::loader::{Loader, LoaderConfig};
use sluice::model::{KvType, Phase, Use};
use sluice::planner::{Plan, ResidentRun};
use sluice::quant::GgmlType;
use sluice::source::WeightSource;

/// Header, uses and files that belong together. All tensors are of 8-bit blocks, their bytes are noise.
#[derive(Debug, Clone, Default)]
pub(super) struct FakeModel {
    pub(super) header: Header,
    pub(super) uses: Vec<Use>,
    pub(super) files: Vec<Vec<u8>>,
}

/// One tile as it was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) use_index: usize,
    pub(super) first_row: u32,
    pub(super) n_rows: u32,
}

/// A plan of so many slots and these resident rows.
pub(super) fn plan(n_slots: u32, slot_bytes: u64, residents: &[ResidentRun]) -> Plan {
    Plan {
        n_ctx: 16,
        n_batch: 1,
        n_logits: 1,
        kv: KvType::F32,
        n_slots,
        slot_bytes,
        residents: residents.to_vec(),
        ledger: Vec::new(),
        total_bytes: 0,
        linear_bytes: 0,
        floor_bytes: 0,
        budget_bytes: 0,
        forced: false,
        streamed_bytes_per_token: 0,
        resident_bytes: 0,
        weight_bytes: 0,
    }
}

impl FakeModel {
    /// Appends a tensor of `n_rows` rows of `n_cols` elements to a file; `gap` bytes lie before it.
    pub(super) fn tensor(
        &mut self,
        name: &str,
        file: u32,
        gap: usize,
        n_cols: u32,
        n_rows: u32,
    ) -> u32 {
        while self.files.len() <= file as usize {
            self.files.push(Vec::new());
            self.header.files.push(FilePart { data_offset: 0, min_bytes: 0 });
        }
        let bytes = &mut self.files[file as usize];
        let row_bytes = GgmlType::Q8_0.row_bytes(u64::from(n_cols)).unwrap();
        let n_bytes = row_bytes * u64::from(n_rows);
        let seed = bytes.len() as u32 ^ (file << 24);
        let noise =
            |i: usize| ((i as u32).wrapping_add(seed).wrapping_mul(0x9E37_79B1) >> 24) as u8;
        let offset = (bytes.len() + gap) as u64;
        bytes.extend((0..gap + n_bytes as usize).map(noise));
        self.header.files[file as usize].min_bytes = bytes.len() as u64;
        self.header.tensors.push(TensorEntry {
            name: name.to_owned(),
            ty: TensorType::Known(GgmlType::Q8_0),
            shape: vec![u64::from(n_cols), u64::from(n_rows)],
            file,
            offset,
            n_bytes,
        });
        (self.header.tensors.len() - 1) as u32
    }

    /// Appends a use of all rows of a tensor.
    pub(super) fn takes(&mut self, tensor: u32, phase: Phase, deferred: bool) -> usize {
        let entry = &self.header.tensors[tensor as usize];
        let n_rows = entry.n_rows() as u32;
        let row_bytes = (entry.n_bytes / entry.n_rows()) as u32;
        self.uses.push(Use { tensor, first_row: 0, n_rows, row_bytes, phase, deferred });
        self.uses.len() - 1
    }

    /// Three layers of seven tensors in the file's usual order (by name, not by use), a tied head, norms between.
    pub(super) fn small() -> Self {
        let mut model = Self::default();
        let embed = model.tensor("token_embd.weight", 0, 96, 64, 97);
        model.takes(embed, Phase::Embed, true);
        for layer in 0..3 {
            let mut add = |name: &str, gap, n_cols, n_rows| {
                model.tensor(&format!("blk.{layer}.{name}.weight"), 0, gap, n_cols, n_rows)
            };
            let down = add("ffn_down", 64, 128, 64);
            let gate = add("ffn_gate", 0, 64, 128);
            let up = add("ffn_up", 0, 64, 128);
            let k = add("attn_k", 64, 64, 16);
            let output = add("attn_output", 0, 64, 64);
            let q = add("attn_q", 0, 64, 64);
            let v = add("attn_v", 0, 64, 16);
            for tensor in [q, k, v, output, gate, up, down] {
                model.takes(tensor, Phase::Layer(layer), false);
            }
        }
        model.takes(embed, Phase::Head, false);
        model
    }

    /// Stored bytes of the longest row.
    pub(super) fn longest_row(&self) -> u64 {
        self.uses.iter().map(|u| u64::from(u.row_bytes)).max().unwrap()
    }

    /// See [`plan`].
    pub(super) fn plan(&self, n_slots: u32, slot_bytes: u64, residents: &[ResidentRun]) -> Plan {
        plan(n_slots, slot_bytes, residents)
    }

    /// The rows of a use as a resident run.
    pub(super) fn run(&self, tensor: u32, first_row: u32, n_rows: u32) -> ResidentRun {
        let entry = &self.header.tensors[tensor as usize];
        ResidentRun {
            tensor,
            first_row,
            n_rows,
            row_bytes: (entry.n_bytes / entry.n_rows()) as u32,
        }
    }

    /// Every tensor, whole.
    pub(super) fn all_resident(&self) -> Vec<ResidentRun> {
        (0..self.header.tensors.len() as u32)
            .map(|t| self.run(t, 0, self.header.tensors[t as usize].n_rows() as u32))
            .collect()
    }

    pub(super) fn loader(&self, plan: &Plan, source: Rc<dyn WeightSource>) -> Loader {
        Loader::new(&self.header, &self.uses, plan, source, LoaderConfig::default()).unwrap()
    }

    /// The bytes of rows of a use as they are in the file.
    pub(super) fn rows(&self, use_index: usize, first_row: u32, n_rows: u32) -> &[u8] {
        let u = &self.uses[use_index];
        let entry = &self.header.tensors[u.tensor as usize];
        let start = entry.offset as usize + first_row as usize * u.row_bytes as usize;
        &self.files[entry.file as usize][start..start + n_rows as usize * u.row_bytes as usize]
    }

    /// Takes a whole pass: of each use every row, of deferred ones the rows `named`, checking every byte.
    pub(super) async fn pass(
        &self,
        loader: &mut Loader,
        head: bool,
        named: &[u32],
    ) -> Result<Vec<Taken>> {
        loader.begin_pass(head, named);
        let mut taken = Vec::new();
        for (use_index, u) in self.uses.iter().enumerate() {
            match (u.phase, u.deferred) {
                (Phase::Open, _) => {}
                (Phase::Head, _) if !head => {}
                (_, true) => {
                    for row in named {
                        self.take(loader, use_index, *row, 1, &mut taken).await?;
                    }
                }
                _ => self.take(loader, use_index, u.first_row, u.n_rows, &mut taken).await?,
            }
        }
        Ok(taken)
    }

    /// Takes `n_rows` rows of a use, in as many tiles as come.
    pub(super) async fn take(
        &self,
        loader: &mut Loader,
        use_index: usize,
        first_row: u32,
        n_rows: u32,
        taken: &mut Vec<Taken>,
    ) -> Result<()> {
        let (mut row, end) = (first_row, first_row + n_rows);
        while row < end {
            let Some(tile) = loader.tile(use_index, row, end - row)? else {
                loader.wait().await;
                continue;
            };
            assert_eq!((tile.use_index(), tile.first_row()), (use_index, row), "another tile came");
            assert!(
                tile.n_rows() > 0 && tile.n_rows() <= end - row,
                "{} rows of {}",
                tile.n_rows(),
                end - row
            );
            let expected = self.rows(use_index, row, tile.n_rows());
            assert!(
                *loader.bytes(&tile) == *expected,
                "wrong bytes in use {use_index} from row {row} on"
            );
            row += tile.n_rows();
            taken.push(Taken { use_index, first_row: tile.first_row(), n_rows: tile.n_rows() });
            loader.release(tile);
        }
        Ok(())
    }
}
