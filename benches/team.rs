//! What it costs to call threads together and wait for them, natively (`cargo bench --bench team`) and in browsers
//! (`scripts/bench/barrier.mjs`). A decode step does it about four times a layer.
#![allow(missing_docs, reason = "a program")]

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};

use sluice::team::{Pool, Team as _};

#[path = "team/host.rs"]
mod host;

use host::{lead, now_ms, print};

fn main() {
    lead(|pool| {
        let turns = turns_a_microsecond();
        // Between two products of a pass, and after a pause in which the helpers have gone to sleep.
        for (what, pause_us, batch) in [("awake", 5, 100), ("asleep", 2000, 10)] {
            let pause = Pause { turns, least: pause_us * turns };
            let clock = median(&mut batches(&pause, batch, || ()));
            for n_threads in 1..=pool.capacity() {
                pool.use_threads(n_threads);
                // The leader waits for those alone that came in time; or for all, which is what work of some length comes to.
                for (whom, wanted) in [("whoever comes", 1), ("all come", n_threads)] {
                    let mut took = batches(&pause, batch, || round(pool, wanted));
                    let (middle, late) = (median(&mut took), took[took.len() * 9 / 10]);
                    let [middle, late] = [middle, late].map(|ms| (ms - clock) * 1e3);
                    print(&format!(
                        "{n_threads} threads, {what}, {whom}: median {middle:.2} µs, 90 % within {late:.2} µs"
                    ));
                }
            }
        }
    });
}

/// A round that is over when `wanted` threads or more have come.
fn round(pool: &Pool, wanted: usize) {
    let came = AtomicUsize::new(0);
    pool.run(&|_| {
        came.fetch_add(1, Ordering::Relaxed);
        while came.load(Ordering::Relaxed) < wanted {
            spin_loop();
        }
    });
}

/// Milliseconds of `work`, each of these the mean of a batch: the clocks of browsers go in steps that are longer than a round, and
/// only where its pauses end anywhere between two steps is the mean right.
fn batches(pause: &Pause, batch: u32, mut work: impl FnMut()) -> Vec<f64> {
    let mut number = 0;
    let mut one = || {
        let mut sum = 0.0;
        for _ in 0..batch {
            number += 1;
            pause.make(number);
            let started = now_ms();
            work();
            sum += now_ms() - started;
        }
        sum / f64::from(batch)
    };
    for _ in 0..20 {
        one(); // threads wake up, compilers see what is hot
    }
    (0..200).map(|_| one()).collect()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A pause without a look at the clock.
struct Pause {
    /// Turns of a loop in a microsecond.
    turns: u32,
    least: u32,
}

impl Pause {
    /// The least and up to 20 µs more.
    fn make(&self, number: u32) {
        spin(self.least + number.wrapping_mul(0x9e37_79b9) % (20 * self.turns));
    }
}

fn spin(turns: u32) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// How many turns of [`spin`] a microsecond has.
fn turns_a_microsecond() -> u32 {
    let mut turns = 1 << 16;
    loop {
        let started = now_ms();
        spin(turns);
        let took = now_ms() - started;
        // A fifth of a second: by then the loop runs as the compiler of a browser makes it in the end.
        if took > 200.0 {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "some thousand"
            )]
            return (f64::from(turns) / took / 1e3).ceil() as u32;
        }
        turns *= 2;
    }
}
