//! Threads that wait for work, and the gate through which they come to it and leave.
//!
//! The leader opens the gate for a round, works too, closes it, and waits until nobody is inside. Whoever comes late finds the
//! gate closed and has missed nothing: a thread that sleeps costs a round the price of waking it and no more. Waiting is spinning
//! for a moment, then sleeping. The threads themselves are started elsewhere: natively by [`Pool::spawn`], in a browser by
//! workers that call [`Pool::serve`].
//!
//! A round's work borrows from the leader's stack. So the leader leaves a round only when nobody is inside; where that cannot be
//! had, because a helper has broken down, the process ends (natively) or the module traps (in a browser).
#![allow(
    unsafe_code,
    reason = "the round's work is borrowed by other threads for as long as the leader waits for them"
)]

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::time::Duration;

use super::Team;

/// A leader and its helpers.
#[derive(Debug)]
pub struct Pool {
    /// Round, whether it is open, and how many helpers are inside it.
    gate: AtomicU32,
    work: UnsafeCell<Option<Work>>,
    helpers: Box<[Sleeper]>,
    /// Threads that take part; helpers with higher numbers sleep.
    n_active: AtomicUsize,
    /// Threads that stay; helpers with higher numbers go.
    n_kept: AtomicUsize,
    /// Threads that can run at a time.
    n_cores: usize,
    /// One of the cores is somebody else's for now.
    shares: AtomicBool,
    /// A round is under way: there is never a second one.
    running: AtomicBool,
    leader: Sleeper,
    /// Not 0: a thread has broken down, and nothing that was computed counts.
    failed: AtomicU32,
}

/// What a round does; valid while the gate is open or somebody is inside.
#[derive(Debug, Clone, Copy)]
struct Work(*const ());

/// What [`Work`] points to.
type Borrowed<'a> = &'a (dyn Fn(usize) + Sync);

// SAFETY: `work` is written by the leader while nobody is inside and the gate is closed, and read by helpers that are inside;
// what it points to is `Sync`.
unsafe impl Sync for Pool {}
// SAFETY: as above: whichever thread has the pool, the pointer is only used inside a round.
unsafe impl Send for Pool {}

/// A thread that can be woken.
#[derive(Debug, Default)]
struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Pool {
    /// A pool of `n_threads` whose leader is the calling thread; the others are to call [`Pool::serve`].
    #[must_use]
    pub fn new(n_threads: usize) -> Self {
        Self::with_cores(n_threads, usize::MAX)
    }

    /// The same on a machine of `n_cores`, whose threads make room for others ([`Team::share_cores`]).
    #[must_use]
    pub fn with_cores(n_threads: usize, n_cores: usize) -> Self {
        let pool = Self {
            gate: AtomicU32::new(0),
            work: UnsafeCell::new(None),
            helpers: (1..n_threads.clamp(1, MOST_THREADS)).map(|_| Sleeper::default()).collect(),
            n_active: AtomicUsize::new(n_threads.clamp(1, MOST_THREADS)),
            n_kept: AtomicUsize::new(n_threads.clamp(1, MOST_THREADS)),
            n_cores,
            shares: AtomicBool::new(false),
            running: AtomicBool::new(false),
            leader: Sleeper::default(),
            failed: AtomicU32::new(0),
        };
        pool.leader.thread.get_or_init(thread::current);
        pool
    }

    /// A pool whose helpers are threads of this process. They end when [`Pool::end`] is called.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "natively this is where threads come from")]
    pub fn spawn(n_threads: usize) -> Arc<Self> {
        let pool = Arc::new(Self::new(n_threads));
        for number in 1..pool.capacity() {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.serve(number));
        }
        pool
    }

    /// Works as helper `number` (from 1 on) until the pool ends or keeps fewer; at once where there is no such helper.
    ///
    /// # Panics
    /// When another thread is or was this helper.
    pub fn serve(&self, number: usize) {
        let Some(me) = self.helpers.get(number.wrapping_sub(1)) else { return };
        assert!(me.thread.set(thread::current()).is_ok(), "helper {number} is another thread");
        let let_go = || self.n_kept.load(Ordering::SeqCst) <= number;
        let mut served = 0;
        loop {
            let news = || {
                let gate = self.gate.load(Ordering::SeqCst);
                let opened =
                    gate & OPEN != 0 && gate / ROUND != served && number < self.n_taking_part();
                (opened || let_go()).then_some(gate)
            };
            // Who rests leaves its core at once.
            let spins = || number < self.n_taking_part();
            let Some(seen) = me.wait(news, spins, thread::park) else { continue };
            if let_go() {
                return;
            }
            let entered =
                self.gate.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::Relaxed);
            if entered.is_err() {
                continue;
            }
            served = seen / ROUND;
            let inside = Inside(self);
            // SAFETY: the leader wrote it before it opened the gate, and writes it again only when nobody is inside.
            if let Some(work) = unsafe { *self.work.get() } {
                // SAFETY: it points to the leader's stack, and the leader does not leave its round while we are inside.
                (unsafe { *work.0.cast::<Borrowed<'_>>() })(number);
            }
            drop(inside);
        }
    }

    /// Threads there are, the leader included.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Threads that take part in rounds now: of those in use all but those that rest.
    #[must_use]
    pub fn n_taking_part(&self) -> usize {
        let n = self.n_active.load(Ordering::SeqCst);
        match self.shares.load(Ordering::SeqCst) {
            true => n.min(self.n_cores.saturating_sub(1)).max(1),
            false => n,
        }
    }

    /// From the next round on only `n` threads take part, as far as there are so many.
    pub fn use_threads(&self, n: usize) {
        let n_kept = self.n_kept.load(Ordering::SeqCst);
        self.n_active.store(n.clamp(1, n_kept), Ordering::SeqCst);
    }

    /// The same for good: helpers with higher numbers leave [`Pool::serve`].
    pub fn keep_threads(&self, n: usize) {
        self.n_kept.fetch_min(n.max(1), Ordering::SeqCst);
        self.use_threads(n.min(self.n_threads()));
        self.helpers.iter().for_each(Sleeper::wake);
    }

    /// Lets the helpers go; a round that is under way ends as usual, and the leader alone does later ones.
    pub fn end(&self) {
        self.keep_threads(1);
    }

    /// The word that is set to anything but 0 from outside when a helper has broken down.
    #[must_use]
    pub fn failed_word(&self) -> &AtomicU32 {
        &self.failed
    }

    fn wait_until_empty(&self) {
        let closed = self.gate.fetch_and(!OPEN, Ordering::SeqCst) & !OPEN;
        let empty = || (self.gate.load(Ordering::SeqCst) == closed & !INSIDE).then_some(0);
        let mut patience = PATIENCE;
        while self.leader.wait(empty, || true, || thread::park_timeout(NAP)).is_none() {
            if self.failed.load(Ordering::SeqCst) != 0 {
                break_down("a compute thread has failed");
            }
            // Only a worker of a browser can vanish inside a round.
            patience -= u32::from(cfg!(target_arch = "wasm32"));
            if patience == 0 {
                break_down("a compute thread does not answer");
            }
        }
        if self.failed.load(Ordering::SeqCst) != 0 {
            break_down("a compute thread has failed");
        }
    }
}

/// Ends everything where going on or unwinding would free what other threads still use.
fn break_down(why: &str) -> ! {
    #[cfg(not(target_arch = "wasm32"))]
    {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{why}"); // there is nobody else to tell
        std::process::abort()
    }
    #[cfg(target_arch = "wasm32")]
    panic!("{why}") // a panic is a trap there: nothing unwinds
}

// SAFETY: there is one round at a time, and the leader calls with 0; a helper's number is its own, it enters a round once, and the
// leader leaves it, by returning or by unwinding, when nobody is inside any more. Where that cannot be had it does neither.
unsafe impl Team for Pool {
    fn n_threads(&self) -> usize {
        self.n_active.load(Ordering::SeqCst)
    }

    /// # Panics
    /// When a round is under way: work that calls for more threads, or a second leader.
    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        assert!(!self.running.swap(true, Ordering::SeqCst), "a round inside a round");
        let round = self.gate.load(Ordering::SeqCst) / ROUND;
        let borrowed: Borrowed<'_> = work;
        // SAFETY: nobody is inside, the gate is closed and this is the one round, so this is the only access.
        unsafe { *self.work.get() = Some(Work((&raw const borrowed).cast())) };
        // The number wraps long before a helper could mistake a round for the last one that it served.
        let round = if round == LAST_ROUND { 1 } else { round + 1 };
        self.gate.store((round * ROUND) | OPEN, Ordering::SeqCst);
        let others = self.n_taking_part() - 1;
        let leaving = Closing(self);
        self.helpers[..others].iter().for_each(Sleeper::wake);
        work(0);
        drop(leaving);
    }

    fn share_cores(&self, busy: bool) {
        self.shares.store(busy, Ordering::SeqCst);
    }
}

/// The leader leaves a round when everybody else has, also when its own work panics.
struct Closing<'a>(&'a Pool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.wait_until_empty();
        self.0.running.store(false, Ordering::SeqCst);
    }
}

/// A helper inside a round. One that panics there ends everything: what the others compute with its part would be wrong.
struct Inside<'a>(&'a Pool);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            break_down("a compute thread has failed");
        }
        let left = self.0.gate.fetch_sub(1, Ordering::SeqCst);
        if left & (OPEN | INSIDE) == 1 {
            self.0.leader.wake();
        }
    }
}

impl Sleeper {
    /// Waits until `ready` gives something, or for a while: spinning as long as `spins`, then `park`, which sleeps
    /// until the thread is woken, or less.
    fn wait<T>(
        &self,
        ready: impl Fn() -> Option<T>,
        spins: impl Fn() -> bool,
        park: impl Fn(),
    ) -> Option<T> {
        for _ in 0..SPINS {
            if let Some(value) = ready() {
                return Some(value);
            }
            if !spins() {
                break;
            }
            spin_loop();
        }
        // First `asleep`, then another look: whoever changes something looks at `asleep` afterwards.
        self.asleep.store(true, Ordering::SeqCst);
        let value = ready();
        if value.is_none() {
            park();
        }
        self.asleep.store(false, Ordering::SeqCst);
        value.or_else(ready)
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

/// Helpers inside a round.
const INSIDE: u32 = 0x7f;
/// Helpers may come in.
const OPEN: u32 = 0x80;
/// Rounds are counted above these.
const ROUND: u32 = 0x100;
const LAST_ROUND: u32 = u32::MAX / ROUND;

/// As many as can be counted inside.
const MOST_THREADS: usize = 0x7f;

/// Looks before sleeping: longer than the pause between two products of a pass, shorter than it would pay to keep a core.
const SPINS: u32 = 20_000;
/// The leader looks around this often, should nobody be left to wake it.
const NAP: Duration = Duration::from_millis(50);
/// Naps of the leader, each many steps long, after which a worker inside a round counts as vanished.
const PATIENCE: u32 = 400;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_round_is_over_when_all_who_came_have_left_and_sleepers_come_to_later_ones() {
        let pool = Pool::spawn(3);
        let came = [const { AtomicU32::new(0) }; 3];
        for round in 0..200 {
            let inside = AtomicU32::new(0);
            pool.run(&|number| {
                inside.fetch_add(1, Ordering::SeqCst);
                came[number].fetch_add(1, Ordering::SeqCst);
                if round % 50 == 0 {
                    thread::sleep(Duration::from_millis(3));
                }
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            assert_eq!(inside.load(Ordering::SeqCst), 0, "round {round}");
            if round % 40 == 0 {
                thread::sleep(Duration::from_millis(5)); // they go to sleep
            }
        }
        let came = came.map(|n| n.load(Ordering::SeqCst));
        assert_eq!(came[0], 200);
        assert!(came[1] > 0 && came[2] > 0, "{came:?}");
        assert!(came.iter().all(|n| *n <= 200), "{came:?}");
        pool.end();
    }

    #[test]
    fn only_the_threads_in_use_come() {
        let pool = Pool::spawn(3);
        for n in [2, 1] {
            pool.use_threads(n);
            let wanted = [true, n == 2, false];
            assert_eq!(who_comes(&pool, wanted), wanted, "with {n}");
        }
        pool.end();
    }

    #[test]
    fn a_helper_rests_while_somebody_else_needs_its_core_and_comes_again() {
        for (n_cores, rests) in [(3, true), (4, false)] {
            let pool = Arc::new(Pool::with_cores(3, n_cores));
            for number in [1, 2] {
                start(&pool, number);
            }
            for busy in [true, false, true] {
                pool.share_cores(busy);
                let wanted = [true, true, !(busy && rests)];
                assert_eq!(who_comes(&pool, wanted), wanted, "{n_cores} cores, {busy}");
                assert_eq!(pool.n_threads(), 3, "working memory is for all");
            }
            pool.end();
        }
    }

    #[allow(clippy::disallowed_methods, reason = "a test of native threads")]
    fn start(pool: &Arc<Pool>, number: usize) {
        let pool = Arc::clone(pool);
        thread::spawn(move || pool.serve(number));
    }

    /// Which of three threads take part in some of many rounds, and of as many more as it takes until those that are `wanted` have.
    fn who_comes(pool: &Pool, wanted: [bool; 3]) -> [bool; 3] {
        let seen = Mutex::new([false; 3]);
        for round in 0..50_000 {
            if round >= 100 && *seen.lock().expect("nobody panics") == wanted {
                break;
            }
            pool.run(&|number| {
                seen.lock().expect("nobody panics")[number] = true;
                thread::sleep(Duration::from_micros(100));
            });
        }
        seen.into_inner().expect("nobody panics")
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test of native threads")]
    fn helpers_that_are_not_kept_leave_and_the_leader_does_the_work() {
        let pool = Arc::new(Pool::new(3));
        let helpers = [1, 2].map(|number| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.serve(number))
        });
        pool.keep_threads(2);
        let [first, second] = helpers;
        second.join().expect("helper 2 leaves");
        assert!(!first.is_finished(), "helper 1 stays");
        pool.end();
        first.join().expect("helper 1 leaves");
        pool.serve(3); // there is no such helper
        let n = AtomicU32::new(0);
        pool.run(&|number| {
            assert_eq!(number, 0, "nobody else is left");
            n.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(n.into_inner(), 1);
    }

    #[test]
    fn a_leader_that_panics_leaves_the_round_when_the_others_have_left() {
        let pool = Pool::spawn(2);
        let inside = AtomicU32::new(0);
        for _ in 0..20 {
            let came = AtomicBool::new(false);
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                pool.run(&|number| {
                    if number == 0 {
                        while !came.load(Ordering::SeqCst) {
                            spin_loop();
                        }
                        panic!("the leader's fault");
                    }
                    inside.fetch_add(1, Ordering::SeqCst);
                    came.store(true, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(2));
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }));
            assert!(panicked.is_err(), "the panic goes on");
            assert_eq!(inside.load(Ordering::SeqCst), 0, "a helper is still inside");
        }
        pool.end();
    }

    #[test]
    fn a_second_round_at_a_time_and_a_second_thread_of_one_number_are_refused() {
        let pool = Pool::new(2);
        let refused = |misuse: &dyn Fn()| catch_unwind(AssertUnwindSafe(misuse)).is_err();
        let nested = AtomicBool::new(false);
        pool.run(&|_| nested.store(refused(&|| pool.run(&|_| ())), Ordering::SeqCst));
        assert!(nested.into_inner(), "a round inside a round");
        pool.run(&|_| ());
        pool.end();
        pool.serve(1);
        assert!(refused(&|| pool.serve(1)), "helper 1 again");
    }

    /// Runs this test alone in a process of its own, which is to end by itself.
    #[test]
    fn a_helper_that_panics_ends_the_process() {
        const CHILD: &str = "SLUICE_TEST_BROKEN_HELPER";
        if std::env::var_os(CHILD).is_some() {
            let pool = Pool::spawn(2);
            let came = AtomicBool::new(false);
            let _ = catch_unwind(AssertUnwindSafe(|| {
                pool.run(&|number| {
                    came.fetch_or(number == 1, Ordering::SeqCst);
                    assert!(number == 0, "a helper's fault");
                    while !came.load(Ordering::SeqCst) {
                        spin_loop();
                    }
                });
            }));
            return; // somebody was inside when it broke down, and all goes on
        }
        let name = "team::pool::tests::a_helper_that_panics_ends_the_process";
        let own = std::env::current_exe().expect("a test binary");
        let ended = std::process::Command::new(own)
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && ended.status.code().is_none(), "it went on: {said}");
        assert!(said.contains("a compute thread has failed"), "{said}");
    }
}
