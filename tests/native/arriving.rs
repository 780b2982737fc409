//! Opening while the bytes are still on their way: every model computes what it does from a file that is there.

use std::path::PathBuf;
use std::rc::Rc;
use std::task::Waker;

use sluice::runtime::native::{NativeHost, block_on, open_source};
use sluice::runtime::{Engine, OpenConfig, WeightSource};
use sluice::source::{Completion, Places, ReadRequest};

use super::generate::{computed, embedding, fixture, open};

/// A file whose bytes count as not all there yet.
#[derive(Debug)]
struct Arriving(Rc<dyn WeightSource>);

impl WeightSource for Arriving {
    fn is_arriving(&self) -> bool {
        true
    }

    fn n_files(&self) -> u32 {
        self.0.n_files()
    }

    fn file_bytes(&self, file: u32) -> Option<u64> {
        self.0.file_bytes(file)
    }

    fn submit(&self, request: ReadRequest, places: &Rc<dyn Places>) {
        self.0.submit(request, places);
    }

    fn poll(&self) -> Option<Completion> {
        self.0.poll()
    }

    fn wake_on_completion(&self, waker: &Waker) {
        self.0.wake_on_completion(waker);
    }

    fn cancel_all(&self) {
        self.0.cancel_all();
    }
}

#[test]
fn every_architecture_has_its_norms_and_factors_when_a_pass_needs_them() {
    let ids: Vec<u32> = (0..12).map(|i| (i * 7 + 3) % 50).collect();
    let config = OpenConfig { all_logits: true, n_ctx: Some(64), ..OpenConfig::default() };
    let models = std::fs::read_dir(fixture("models")).expect("the folder");
    let paths = models.map(|entry| entry.expect("an entry").path());
    let mut n_models = 0;
    for path in paths.filter(|path| path.extension().is_some_and(|kind| kind == "gguf")) {
        let expected = computed(&mut open(&path, &config), &ids, u32::MAX);
        let found = computed(&mut open_arriving(&path, &config), &ids, u32::MAX);
        assert!(found == expected, "{path:?}");
        n_models += 1;
    }
    assert!(n_models > 20, "{n_models} models");
}

#[test]
fn the_first_thing_asked_of_an_arriving_model_may_be_an_embedding() {
    let ids = [5, 60, 33, 7];
    for name in ["llama-ropefreqs-tied", "gemma3", "bert"] {
        let path = fixture(&format!("models/{name}.gguf"));
        let config = OpenConfig { n_ctx: Some(64), embeddings: true, ..OpenConfig::default() };
        let expected = embedding(&mut open(&path, &config), &ids);
        assert_eq!(embedding(&mut open_arriving(&path, &config), &ids), expected, "{name}");
    }
}

fn open_arriving(path: &PathBuf, config: &OpenConfig) -> Engine {
    let file = open_source(std::slice::from_ref(path), false).expect("the file is there");
    let source = Rc::new(Arriving(file));
    block_on(Engine::open(source, config, &NativeHost::new()))
        .unwrap_or_else(|halted| panic!("{path:?}: {halted:?}"))
}
