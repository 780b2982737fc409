//! Where the rows of each use are: in which file, and in which resident run if they are kept. Checked once, here.

use crate::error::{Error, ErrorKind, Result};
use crate::gguf::{Header, TensorEntry, TensorType};
use crate::model::{Phase, Use};
use crate::planner::ResidentRun;
use crate::quant::GgmlType;
use crate::source::FileRange;

/// The uses of a model with the places of their tensors.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) uses: Box<[Use]>,
    pub(super) runs: Box<[ResidentRun]>,
    tensors: Box<[TensorPlace]>,
}

#[derive(Debug)]
struct TensorPlace {
    name: Box<str>,
    ty: TensorType,
    file: u32,
    offset: u64,
    /// Bytes of a row as it is stored.
    stored_row_bytes: u32,
    /// Bytes of a row as it is handed out: the same, or 4 for each element.
    row_bytes: u32,
    /// Index into `runs`, or [`NO_RUN`].
    run: u32,
}

const NO_RUN: u32 = u32::MAX;

impl Directory {
    /// # Errors
    /// `internal` when uses or residents do not fit the header: the model and the planner made them from the same one.
    pub(super) fn new(header: &Header, uses: &[Use], residents: &[ResidentRun]) -> Result<Self> {
        let tensors = header.tensors.iter().map(TensorPlace::new).collect();
        let mut directory = Self { uses: uses.into(), runs: residents.into(), tensors };
        for u in uses.iter().filter(|u| u.phase != Phase::Open) {
            let rows = ResidentRun {
                tensor: u.tensor,
                first_row: u.first_row,
                n_rows: u.n_rows,
                row_bytes: u.row_bytes,
            };
            directory.check_rows(header, rows)?;
        }
        for (i, run) in (0..).zip(residents) {
            directory.check_rows(header, *run)?;
            let tensor = &mut directory.tensors[run.tensor as usize];
            if tensor.run != NO_RUN {
                return Err(internal(format!("the plan has two resident runs of {}", tensor.name)));
            }
            tensor.run = i;
        }
        Ok(directory)
    }

    fn check_rows(&mut self, header: &Header, rows: ResidentRun) -> Result<()> {
        let ResidentRun { tensor, first_row, n_rows, row_bytes } = rows;
        let Some(entry) = header.tensors.get(tensor as usize) else {
            return Err(internal(format!("tensor {tensor} of {}", header.tensors.len())));
        };
        let place = &mut self.tensors[tensor as usize];
        let end = first_row.checked_add(n_rows);
        let bytes = end.map(|end| u64::from(end) * u64::from(place.stored_row_bytes));
        let inside =
            bytes.is_some_and(|b| b <= entry.n_bytes && entry.offset.checked_add(b).is_some());
        if !inside || n_rows == 0 || row_bytes == 0 {
            let name = &place.name;
            return Err(internal(format!(
                "{n_rows} rows from row {first_row} on are not in {name}"
            )));
        }
        let known = matches!(entry.ty, TensorType::Known(_));
        let as_f32 = known && entry.n_cols().checked_mul(4) == Some(row_bytes.into());
        if row_bytes == place.row_bytes || (as_f32 && place.row_bytes == place.stored_row_bytes) {
            place.row_bytes = row_bytes;
            return Ok(());
        }
        let TensorPlace { name, row_bytes: other, .. } = place;
        Err(internal(format!("rows of {name} have {other} bytes, not {row_bytes}")))
    }

    /// The tensor's name.
    pub(super) fn name(&self, tensor: u32) -> &str {
        &self.tensors[tensor as usize].name
    }

    /// The resident run of the tensor, if it has one.
    pub(super) fn run_of(&self, tensor: u32) -> Option<usize> {
        match self.tensors[tensor as usize].run {
            NO_RUN => None,
            run => Some(run as usize),
        }
    }

    /// Where `n_rows` rows from `first_row` on are in the files.
    pub(super) fn range(&self, tensor: u32, first_row: u32, n_rows: u32) -> FileRange {
        let tensor = &self.tensors[tensor as usize];
        let row_bytes = tensor.stored_row_bytes;
        let offset = tensor.offset + u64::from(first_row) * u64::from(row_bytes);
        FileRange { file: tensor.file, offset, len: n_rows as usize * row_bytes as usize }
    }

    /// Bytes of the tensor's rows as they are handed out.
    pub(super) fn row_bytes(&self, tensor: u32) -> u32 {
        self.tensors[tensor as usize].row_bytes
    }

    /// The stored format of rows that are handed out as f32, and the bytes of a stored row; `None` where they are handed out
    /// as they are.
    pub(super) fn dequantised(&self, tensor: u32) -> Option<(GgmlType, usize)> {
        let tensor = &self.tensors[tensor as usize];
        match tensor.ty {
            TensorType::Known(ty) if tensor.row_bytes != tensor.stored_row_bytes => {
                Some((ty, tensor.stored_row_bytes as usize))
            }
            _ => None,
        }
    }

    /// Bytes of the longest stored row that is handed out as f32.
    pub(super) fn longest_dequantised(&self) -> usize {
        let tensors = 0..u32::try_from(self.tensors.len()).unwrap_or(u32::MAX);
        tensors.filter_map(|t| self.dequantised(t)).map(|(_, bytes)| bytes).max().unwrap_or(0)
    }

    /// Rows `first .. end` of a use that are read again in every pass: what of it lies before and behind its resident run.
    pub(super) fn streamed_parts(&self, u: &Use) -> [(u32, u32); 2] {
        let (first, end) = (u.first_row, u.first_row + u.n_rows);
        match self.run_of(u.tensor).map(|r| self.runs[r]) {
            None => [(first, end), (end, end)],
            Some(run) => {
                let run_end = run.first_row + run.n_rows;
                [(first, run.first_row.clamp(first, end)), (run_end.clamp(first, end), end)]
            }
        }
    }

    /// Whether any row of the use is not resident.
    pub(super) fn streams(&self, u: &Use) -> bool {
        u.phase != Phase::Open && self.streamed_parts(u).iter().any(|(first, end)| first < end)
    }

    /// `e` with the tensor and the range whose reading failed.
    pub(super) fn describe(&self, e: &Error, tensor: u32, range: FileRange) -> Error {
        let FileRange { file, offset, len } = range;
        let name = self.name(tensor);
        let message =
            format!("reading {len} bytes of {name} at offset {offset} of file {file} failed: {e}");
        e.reworded(message)
            .with("tensor", name)
            .with("file", u64::from(file))
            .with("offset", offset)
            .with("length", len as u64)
    }
}

impl TensorPlace {
    fn new(entry: &TensorEntry) -> Self {
        // A tensor without bytes or of an unknown format is refused where a use names it.
        let row_bytes = entry.n_bytes.checked_div(entry.n_rows()).unwrap_or(0);
        let row_bytes = u32::try_from(row_bytes).unwrap_or(0);
        Self {
            name: entry.name.as_str().into(),
            ty: entry.ty,
            file: entry.file,
            offset: entry.offset,
            stored_row_bytes: row_bytes,
            row_bytes,
            run: NO_RUN,
        }
    }
}

pub(super) fn internal(message: String) -> Error {
    Error::new(ErrorKind::Internal, message)
}
