//! A device with as many cores as compute threads: one of these rests while a token's weights are being read.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{Checkpoint, Engine, Host, Inspection, OpenConfig, Pool, Team};
use sluice::source::{Delivery, FaultySource};

use super::generate::fixture;

/// Notes how many threads share each step.
struct Watching {
    pool: Arc<Pool>,
    native: NativeHost,
    seen: RefCell<Vec<usize>>,
}

impl Host for Watching {
    fn now_ms(&self) -> f64 {
        self.native.now_ms()
    }

    fn team(&self) -> Option<Arc<dyn Team>> {
        Some(Arc::clone(&self.pool) as Arc<dyn Team>)
    }

    fn checkpoint(&self, _now_ms: f64) -> Checkpoint {
        self.seen.borrow_mut().push(self.pool.n_taking_part());
        Checkpoint::Go
    }
}

/// The numbers of threads that were seen, from the smallest on, while `n_chunk` tokens at a time went through a model.
fn seen(n_cores: usize, streams: bool, n_chunk: u32) -> Vec<usize> {
    let files = vec![std::fs::read(fixture("models/llama-7to1.gguf")).expect("the fixture")];
    let source = || Rc::new(FaultySource::new(files.clone(), Delivery::Shuffled { seed: 7 }, &[]));
    let mut config = OpenConfig {
        n_ctx: Some(64),
        n_batch: Some(8),
        all_logits: true,
        n_threads: 2,
        ..OpenConfig::default()
    };
    let watching = Watching {
        pool: Arc::new(Pool::with_cores(2, n_cores)),
        native: NativeHost::new(),
        seen: RefCell::default(),
    };
    if streams {
        (config.n_slots, config.slot_bytes) = (Some(3), Some(1 << 14));
        let inspection = block_on(Inspection::read(source(), &watching)).expect("a header");
        config.budget_bytes = Some(inspection.plan(&config).expect("a plan").floor_bytes);
    }
    let mut engine = block_on(Engine::open(source(), &config, &watching)).expect("it opens");
    assert_eq!(engine.plan().streamed_bytes_per_token > 0, streams, "{:?}", engine.plan());
    watching.seen.take();
    let ids: Vec<u32> = (1..=8).collect();
    block_on(engine.logits(&ids, n_chunk, &watching, &mut |_| ())).expect("logits");
    let mut seen = watching.seen.take();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn a_thread_rests_while_a_token_s_weights_are_read_where_cores_are_few() {
    assert_eq!(seen(2, true, 1), [1, 2], "as many cores as threads, streaming");
    assert_eq!(seen(3, true, 1), [2], "a core for the reading thread");
    assert_eq!(seen(2, true, 8), [2], "a long chunk's steps outlast a read");
    assert_eq!(seen(2, false, 1), [2], "nothing is read");
}
