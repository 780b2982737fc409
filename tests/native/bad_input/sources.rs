//! Sources that fail in the middle: of opening, and of generating while weights stream.

use std::rc::Rc;

use sluice::runtime::native::{NativeHost, block_on};
use sluice::runtime::{Engine, Halted, OpenConfig, Prompt};
use sluice::source::{Delivery, Fault, FaultySource};

use super::attempt::{Attempt, LLAMA, answer, greedy, read};

fn open(source: &Rc<FaultySource>, config: &OpenConfig) -> Result<Engine, Halted> {
    block_on(Engine::open(Rc::<FaultySource>::clone(source), config, &NativeHost::new()))
}

fn source(faults: &[Fault]) -> Rc<FaultySource> {
    Rc::new(FaultySource::new(vec![read(LLAMA)], Delivery::Soon, faults))
}

#[test]
fn a_read_that_fails_while_opening_is_named_and_the_next_open_works() {
    let config = Attempt::sound().config;
    let sound = source(&[]);
    let engine = open(&sound, &config).expect("a sound source");
    drop(engine);
    let n_reads = sound.log().len() as u64;
    assert!(n_reads > 2, "{n_reads} reads");
    for fault in
        (0..n_reads).flat_map(|read| [Fault::FailRead { read }, Fault::ShortRead { read, len: 3 }])
    {
        let spoilt = source(&[fault]);
        let Err(Halted::Failed(error)) = open(&spoilt, &config) else {
            panic!("{fault:?}: accepted")
        };
        assert_eq!(error.code(), "source_failed", "{fault:?}: {error}");
        assert!(error.message().contains("cannot read"), "{fault:?}: {error}");
        open(&spoilt, &config).expect("the second time nothing fails");
    }
}

#[test]
fn a_read_that_fails_while_generating_is_named_and_the_engine_answers_afterwards() {
    let config = Attempt::sound().config;
    let floor = open(&source(&[]), &config).expect("a sound source").plan().floor_bytes;
    let config = OpenConfig { budget_bytes: Some(floor), ..config };
    let spoilt = source(&[]);
    let mut engine = open(&spoilt, &config).expect("a sound source");
    let prompt = Prompt::Ids(vec![1, 2, 3]);
    let expected = answer(&mut engine, &prompt, &greedy()).expect("an answer");
    let mut n_failed = 0;
    for nth in 0.. {
        let before = spoilt.log().len();
        spoilt.add_fault(Fault::FailRead { read: (before + nth) as u64 });
        match answer(&mut engine, &prompt, &greedy()) {
            Err(error) => {
                assert_eq!(error.code(), "source_failed", "read {nth}: {error}");
                assert!(error.message().contains("cannot read"), "read {nth}: {error}");
                n_failed += 1;
            }
            Ok(_) if spoilt.log().len() - before <= nth => break,
            // Read ahead for a pass that did not come: it is read again when it does.
            Ok(ids) => assert_eq!(ids, expected, "read {nth}"),
        }
        let after = answer(&mut engine, &prompt, &greedy()).expect("the engine works on");
        assert_eq!(after, expected, "after read {nth} failed");
    }
    assert!(n_failed > 2, "weights stream: {n_failed} reads failed");
}
