//! A matrix cut into pieces. Each piece is given out once, to one thread, with that thread's own working memory.
#![allow(
    unsafe_code,
    reason = "pieces of one slice are written by several threads; no element is in two of them"
)]

use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Team;

/// Part of a matrix `[n_columns, stride]`: elements `first..first + width` of every column, to be cut both ways.
#[derive(Debug)]
pub struct Grid<'a, T> {
    /// The matrix; its last column may end after its last element.
    pub data: &'a mut [T],
    /// Distance between columns.
    pub stride: usize,
    /// Where the part begins in each column.
    pub first: usize,
    /// Elements of the part in each column.
    pub width: usize,
    /// How many columns.
    pub n_columns: usize,
    /// Elements and columns of a piece, both at least 1; the last pieces may be smaller.
    pub piece: (usize, usize),
}

/// A piece: some elements of some columns, which nobody else has.
#[derive(Debug)]
pub struct Piece<'a, T> {
    /// The first element of the first column.
    start: *mut T,
    stride: usize,
    elements: Range<usize>,
    columns: Range<usize>,
    matrix: PhantomData<&'a mut [T]>,
}

impl<T: Send> Grid<'_, T> {
    /// Has the threads of `team` take the pieces, `work(own, piece)` with the working memory of the thread that took it.
    /// There must be a working memory for each thread.
    pub fn share<O: Send>(
        self,
        team: &dyn Team,
        own: &mut [O],
        work: impl Fn(&mut O, Piece<'_, T>) + Sync,
    ) {
        let Self { data, stride, first, width, n_columns, piece: (wide, high) } = self;
        assert!(team.n_threads() <= own.len(), "working memory for each thread");
        if width == 0 || n_columns == 0 {
            return;
        }
        assert!(wide > 0 && high > 0, "pieces of something");
        assert!(n_columns == 1 || first + width <= stride, "columns do not overlap");
        let end = ((n_columns - 1).checked_mul(stride)).map(|last| last + first + width);
        assert!(end.is_some_and(|end| end <= data.len()), "the part is inside the matrix");

        let across = width.div_ceil(wide);
        let n_pieces = across * n_columns.div_ceil(high);
        let next = AtomicUsize::new(0);
        let data = Shared(data.as_mut_ptr());
        let n_own = own.len();
        let own = Shared(own.as_mut_ptr());
        let (data, own) = (&data, &own);
        team.run(&|thread| {
            // A team may have become larger since it was asked.
            if thread >= n_own {
                return;
            }
            // SAFETY: inside `own`, which outlives the run; and a team runs this with a number at most once in a run.
            let own = unsafe { &mut *own.0.add(thread) };
            loop {
                // Nothing is read on the strength of this number but what was there before the run.
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= n_pieces {
                    return;
                }
                let (row, column) = (i % across * wide, i / across * high);
                let elements = row..width.min(row + wide);
                let columns = column..n_columns.min(column + high);
                // SAFETY: the part's last element is inside `data`, as was checked above, so its first ones are.
                let start = unsafe { data.0.add(column * stride + first + row) };
                work(own, Piece { start, stride, elements, columns, matrix: PhantomData });
            }
        });
    }
}

impl<T> Piece<'_, T> {
    /// Which elements of the part.
    #[must_use]
    pub fn elements(&self) -> Range<usize> {
        self.elements.clone()
    }

    /// Which columns.
    #[must_use]
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// The piece's elements in its column `i`.
    pub fn column(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.columns.len(), "a column of the piece");
        #[allow(
            clippy::disallowed_methods,
            reason = "a piece is no whole slice: bytemuck has nothing for it"
        )]
        // SAFETY: numbers of pieces are given out once, so these elements are in no other piece; they are inside the matrix,
        // which is borrowed for as long as pieces live; and `self` lends one column at a time.
        unsafe {
            core::slice::from_raw_parts_mut(self.start.add(i * self.stride), self.elements.len())
        }
    }
}

/// A pointer that all threads of a run may have.
struct Shared<T>(*mut T);

// SAFETY: what is reached through it is used by one thread at a time, as `share` sees to, and may change threads.
unsafe impl<T: Send> Sync for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::super::Pool;
    use super::*;

    #[test]
    fn every_element_of_the_part_is_in_one_piece_and_no_other_is() {
        let pool = Pool::spawn(3);
        for (width, n_columns, piece) in
            [(1, 1, (1, 1)), (7, 5, (3, 2)), (64, 33, (16, 33)), (5, 9, (100, 4)), (9, 2, (2, 1))]
        {
            let (stride, first) = (width + 3, 2);
            let mut data = vec![0.0; n_columns * stride];
            let mut own = [0, 0, 0];
            let grid = Grid { data: &mut data, stride, first, width, n_columns, piece };
            grid.share(&*pool, &mut own, |count, mut piece| {
                *count += piece.elements().len() * piece.columns().len();
                for (i, column) in piece.columns().enumerate() {
                    let elements = piece.elements();
                    for (value, element) in piece.column(i).iter_mut().zip(elements) {
                        *value += (1 + column * width + element) as f32;
                    }
                }
            });
            assert_eq!(own.iter().sum::<usize>(), width * n_columns, "each is taken once");
            for (i, value) in data.iter().enumerate() {
                let (column, row) = (i / stride, i % stride);
                let inside = (first..first + width).contains(&row);
                let wanted = if inside { (1 + column * width + row - first) as f32 } else { 0.0 };
                assert_eq!(*value, wanted, "element {row} of column {column}");
            }
        }
    }
}
