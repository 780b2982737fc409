//! What it costs to call threads together and wait for them: `cargo bench --bench team`. A decode step does it about four times a layer.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program on its own")]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluice::team::{Pool, Team};

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for n_threads in 1..=cores.min(4) {
        let pool = Pool::spawn(n_threads);
        // Between two products of a pass, and after a pause in which the helpers have gone to sleep.
        for (what, pause, rounds) in [("awake", 10, 20_000), ("asleep", 2000, 500)] {
            let pause = Duration::from_micros(pause);
            // The leader waits for those alone that came in time; or for all, which is what work of some length comes to.
            for (whom, wanted) in [("whoever comes", 1), ("all come", n_threads)] {
                let mut took: Vec<_> = (0..rounds).map(|_| round(&pool, pause, wanted)).collect();
                took.sort_unstable();
                let [median, late] = [took.len() / 2, took.len() * 99 / 100].map(|i| took[i]);
                println!(
                    "{n_threads} threads, {what}, {whom}: median {median} ns, 99 % within {late} ns"
                );
            }
        }
        pool.end();
    }
}

/// Nanoseconds of a round that is over when `wanted` threads or more have come, after a pause.
fn round(pool: &Pool, pause: Duration, wanted: usize) -> u128 {
    let end = Instant::now() + pause;
    while Instant::now() < end {}
    let came = AtomicUsize::new(0);
    let started = Instant::now();
    pool.run(&|_| {
        came.fetch_add(1, Ordering::Relaxed);
        while came.load(Ordering::Relaxed) < wanted {
            spin_loop();
        }
    });
    started.elapsed().as_nanos()
}
