//! Where the rows of each use are: in which file, and in which resident run if they are kept. Checked once, here.

use crate::error::{Error, ErrorKind, Result};
use crate::gguf::Header;
use crate::model::{Phase, Use};
use crate::planner::ResidentRun;
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
    file: u32,
    offset: u64,
    /// Index into `runs`, or [`NO_RUN`].
    run: u32,
}

const NO_RUN: u32 = u32::MAX;

impl Directory {
    /// # Errors
    /// `internal` when uses or residents do not fit the header: the model and the planner made them from the same one.
    pub(super) fn new(header: &Header, uses: &[Use], residents: &[ResidentRun]) -> Result<Self> {
        let place = |t: &crate::gguf::TensorEntry| TensorPlace {
            name: t.name.as_str().into(),
            file: t.file,
            offset: t.offset,
            run: NO_RUN,
        };
        let mut tensors: Box<[TensorPlace]> = header.tensors.iter().map(place).collect();
        for (i, run) in (0..).zip(residents) {
            check_rows(header, run.tensor, run.first_row, run.n_rows, run.row_bytes)?;
            let tensor = &mut tensors[run.tensor as usize];
            if tensor.run != NO_RUN {
                return Err(internal(format!("the plan has two resident runs of {}", tensor.name)));
            }
            tensor.run = i;
        }
        let directory = Self { uses: uses.into(), runs: residents.into(), tensors };
        for u in uses {
            check_rows(header, u.tensor, u.first_row, u.n_rows, u.row_bytes)?;
            match directory.run_of(u.tensor) {
                Some(run) if directory.runs[run].row_bytes != u.row_bytes => {
                    let name = directory.name(u.tensor);
                    return Err(internal(format!("plan and model disagree on the rows of {name}")));
                }
                _ => {}
            }
        }
        Ok(directory)
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

    /// Where `n_rows` rows of `row_bytes` from `first_row` on are in the files.
    pub(super) fn range(
        &self,
        tensor: u32,
        first_row: u32,
        n_rows: u32,
        row_bytes: u32,
    ) -> FileRange {
        let tensor = &self.tensors[tensor as usize];
        let offset = tensor.offset + u64::from(first_row) * u64::from(row_bytes);
        FileRange { file: tensor.file, offset, len: n_rows as usize * row_bytes as usize }
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
        Error::new(e.kind(), message)
            .with("tensor", name)
            .with("file", u64::from(file))
            .with("offset", offset)
            .with("length", len as u64)
    }
}

fn check_rows(
    header: &Header,
    tensor: u32,
    first_row: u32,
    n_rows: u32,
    row_bytes: u32,
) -> Result<()> {
    let Some(entry) = header.tensors.get(tensor as usize) else {
        return Err(internal(format!("tensor {tensor} of {}", header.tensors.len())));
    };
    let end = first_row.checked_add(n_rows);
    let bytes = end.map(|end| u64::from(end) * u64::from(row_bytes));
    let fits = bytes.is_some_and(|b| b <= entry.n_bytes && entry.offset.checked_add(b).is_some());
    if fits && n_rows > 0 && row_bytes > 0 {
        return Ok(());
    }
    Err(internal(format!(
        "{n_rows} rows of {row_bytes} bytes from row {first_row} on are not in {}",
        entry.name
    )))
}

pub(super) fn internal(message: String) -> Error {
    Error::new(ErrorKind::Internal, message)
}
