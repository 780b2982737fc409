//! Operations on rows, each by itself, cut into runs of rows for the threads of a team.

use super::shared::PIECES;
use crate::kernels;
use crate::team::{Grid, THREADS, Team};

/// Does `work(i, row)` to each row of `data`, `[n_rows, width]`.
pub(super) fn each_row(
    team: Option<&dyn Team>,
    data: &mut [f32],
    width: usize,
    work: impl Fn(usize, &mut [f32]) + Sync,
) {
    match worth_sharing(team, data.len() / width, data.len()) {
        Some(team) => share_rows(team, data, width, &work),
        None => data.chunks_exact_mut(width).enumerate().for_each(|(i, row)| work(i, row)),
    }
}

/// Once in the module, whatever the work is.
fn share_rows(
    team: &dyn Team,
    data: &mut [f32],
    width: usize,
    work: &(dyn Fn(usize, &mut [f32]) + Sync),
) {
    let (n_rows, n_threads) = (data.len() / width, team.n_threads());
    let piece = (width, n_rows.div_ceil(n_threads * PIECES));
    let grid = Grid { data, stride: width, first: 0, width, n_columns: n_rows, piece };
    grid.share(team, &mut vec![(); n_threads], |(), mut piece| {
        for (i, row) in piece.columns().enumerate() {
            work(row, piece.column(i));
        }
    });
}

/// The team, where there are rows enough for several threads.
fn worth_sharing(team: Option<&dyn Team>, n_rows: usize, n_values: usize) -> Option<&dyn Team> {
    team.filter(|_| THREADS && n_rows > 1 && n_values >= VALUES_WORTH_SHARING)
}

/// Values and what they are rounded to, of adjacent rows.
struct ToRound<'a> {
    x: &'a [f32],
    qs: &'a mut [i8],
    scales: &'a mut [f32],
    sums: &'a mut [i16],
}

/// Rounds rows of `width` values in blocks of `block`.
pub(super) fn round_shared(
    team: Option<&dyn Team>,
    x: &[f32],
    (width, block): (usize, usize),
    qs: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i16],
) {
    let n_rows = x.len() / width;
    let Some(team) = worth_sharing(team, n_rows, x.len()) else {
        return kernels::quantize_q8(x, block, qs, scales, sums);
    };
    let n_threads = team.n_threads();
    let n = n_rows.div_ceil((n_threads * PIECES).min(MOST_PARTS)) * width;
    let outputs = qs.chunks_mut(n).zip(scales.chunks_mut(n / block)).zip(sums.chunks_mut(n / 16));
    let mut parts =
        (x.chunks(n).zip(outputs)).map(|(x, ((qs, scales), sums))| ToRound { x, qs, scales, sums });
    let mut parts: [_; MOST_PARTS] = core::array::from_fn(|_| parts.next());
    let (width, piece) = (parts.len(), (1, 1));
    let grid = Grid { data: &mut parts, stride: width, first: 0, width, n_columns: 1, piece };
    grid.share(team, &mut vec![(); n_threads], |(), mut piece| {
        for ToRound { x, qs, scales, sums } in piece.column(0).iter_mut().flatten() {
            kernels::quantize_q8(x, block, qs, scales, sums);
        }
    });
}

/// Values below which calling the others takes longer than doing it.
const VALUES_WORTH_SHARING: usize = 8 << 10;
/// Pieces of what is rounded, at most.
const MOST_PARTS: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Pool;

    /// Some with fewer values than are worth sharing, some with rows that the pieces do not divide.
    const SHAPES: [(usize, usize); 5] = [(1, 16384), (3, 64), (33, 256), (129, 64), (512, 64)];

    #[test]
    fn every_row_is_worked_on_once_and_knows_its_number() {
        let pool = Pool::spawn(3);
        for (n_rows, width) in SHAPES {
            let mut data = vec![1.0; n_rows * width];
            each_row(Some(&*pool), &mut data, width, |i, row| {
                row.iter_mut().for_each(|x| *x += i as f32);
            });
            for (i, row) in data.chunks_exact(width).enumerate() {
                assert!(row.iter().all(|x| *x == 1.0 + i as f32), "row {i} of {n_rows}");
            }
        }
        pool.end();
    }

    #[test]
    fn rows_rounded_by_several_threads_are_those_rounded_by_one() {
        let pool = Pool::spawn(3);
        for (n_rows, width) in SHAPES {
            for block in [32, 256].into_iter().filter(|block| width % block == 0) {
                let x: Vec<f32> =
                    (0..n_rows * width).map(|i| (i * 7919 % 1009) as f32 - 400.0).collect();
                let rounded = |team: Option<&dyn Team>| {
                    let mut qs = vec![0; x.len()];
                    let mut scales = vec![0.0; x.len() / block];
                    let mut sums = vec![0; x.len() / 16];
                    round_shared(team, &x, (width, block), &mut qs, &mut scales, &mut sums);
                    (qs, scales, sums)
                };
                let alone = rounded(None);
                assert!(alone.1.iter().all(|scale| *scale > 0.0));
                assert_eq!(rounded(Some(&*pool)), alone, "{n_rows} rows of {width}");
            }
        }
        pool.end();
    }
}
