//! The stepper: what it asks for, and that it refuses everything else without losing its place.

use sluice::model::{Fed, LogitsWanted, Model, Need, Phase, Shape, State};

use super::driver::{Driver, EXACT, fixture, golden, shape, worst};
use sluice::gguf::Header;

#[test]
fn a_pass_asks_for_its_uses_in_order() {
    for (name, want) in [
        ("models/gemma3", LogitsWanted::None),
        ("models/gemma3", LogitsWanted::Last),
        ("models/llama-bias", LogitsWanted::All),
        ("quant/llama-mixed", LogitsWanted::None),
    ] {
        let mut driver = Driver::open(name, &EXACT, &shape(64));
        let prompt = golden(name).prompt;
        driver.state.begin(&driver.model, &prompt[..3], 0, want).unwrap();
        let mut asked = Vec::new();
        let mut layers = Vec::new();
        loop {
            match driver.state.need(&driver.model) {
                Need::Rows { use_index, first_row, .. } => {
                    let u = driver.model.uses()[use_index];
                    if u.phase == Phase::Embed {
                        assert!(u.deferred, "{name}: rows by token");
                        assert!(prompt[..3].contains(&first_row), "{name}: the row of a token");
                    }
                    asked.push(use_index);
                }
                Need::Compute => {}
                Need::Done => break,
            }
            layers.push(driver.state.layer(&driver.model));
            driver.step();
        }
        asked.dedup();
        let of_pass = |head: bool| {
            let uses = driver.model.uses().iter().enumerate();
            let wanted = uses
                .filter(move |(_, u)| u.phase != Phase::Open && (head || u.phase != Phase::Head));
            wanted.map(|(i, _)| i).collect::<Vec<_>>()
        };
        assert_eq!(asked, of_pass(want != LogitsWanted::None), "{name}, {want:?}");
        assert!(layers.is_sorted(), "{name}: layer by layer");
        let n_layer = driver.model.hparams().n_layer as usize;
        let last = if want == LogitsWanted::None { n_layer } else { n_layer + 1 };
        assert_eq!((layers[0], *layers.last().unwrap()), (0, last), "{name}");
    }
}

#[test]
fn experts_name_their_rows() {
    let name = "models/llama-moe";
    let mut driver = Driver::open(name, &EXACT, &shape(64));
    let n_ff = 24;
    driver.state.begin(&driver.model, &golden(name).prompt[..1], 0, LogitsWanted::Last).unwrap();
    let mut experts = Vec::new();
    loop {
        match driver.state.need(&driver.model) {
            Need::Rows { use_index, first_row, n_rows } => {
                let u = driver.model.uses()[use_index];
                if u.deferred && u.phase == Phase::Layer(0) && u.n_rows == 6 * n_ff {
                    assert_eq!((first_row % n_ff, n_rows), (0, n_ff), "one expert's rows");
                    experts.push(first_row / n_ff);
                }
            }
            Need::Compute => {}
            Need::Done => break,
        }
        driver.step();
    }
    // Two experts for the gate, the same two for the other half, each in order.
    assert_eq!(experts.len(), 4);
    assert!(experts[0] < experts[1] && experts[..2] == experts[2..], "{experts:?}");
}

#[test]
fn passes_that_cannot_be_are_refused() {
    let mut driver =
        Driver::open("models/llama-gqa", &EXACT, &Shape { n_ctx: 8, n_batch: 4, n_logits: 2 });
    let all = LogitsWanted::All;
    let code = |driver: &mut Driver, tokens: &[u32], pos, want| {
        driver.state.begin(&driver.model, tokens, pos, want).err().map_or("ok", |e| e.code())
    };
    assert_eq!(code(&mut driver, &[], 0, LogitsWanted::None), "misuse", "no tokens");
    assert_eq!(code(&mut driver, &[1; 5], 0, LogitsWanted::Last), "misuse", "more than a batch");
    assert_eq!(code(&mut driver, &[1; 3], 0, all), "misuse", "more than there are logits for");
    assert_eq!(code(&mut driver, &[1], 1, all), "misuse", "a position ahead");
    assert_eq!(code(&mut driver, &[96], 0, all), "invalid_option", "an id past the vocabulary");
    for _ in 0..2 {
        driver.pass(&[1, 2, 3, 4], LogitsWanted::Last);
    }
    assert_eq!(code(&mut driver, &[1], 8, all), "context_full", "a full context");
    driver.state.rewind(7).unwrap();
    assert_eq!(code(&mut driver, &[1, 2], 7, all), "context_full", "one too many");
    assert_eq!(code(&mut driver, &[1], 7, all), "ok", "the last one");
}

#[test]
fn tiles_that_are_not_wanted_are_refused() {
    let name = "models/llama-gqa";
    let golden = golden(name);
    let mut driver = Driver::open(name, &EXACT, &shape(64)).with_tiles(&[5]);
    assert_eq!(
        driver.state.feed(&driver.model, 0, 1, &[0; 256]).unwrap_err().code(),
        "misuse",
        "no pass"
    );
    assert_eq!(driver.state.compute(&driver.model).unwrap_err().code(), "misuse", "no pass");
    driver.state.begin(&driver.model, &golden.prompt, 0, LogitsWanted::All).unwrap();
    let mut n_refused = 0;
    loop {
        match driver.state.need(&driver.model) {
            Need::Rows { use_index, first_row, n_rows } => {
                let row_bytes = driver.model.uses()[use_index].row_bytes as usize;
                let mut refused = |first_row, n_rows: u32, n_bytes| {
                    let bytes = vec![0; n_bytes];
                    let error =
                        driver.state.feed(&driver.model, first_row, n_rows, &bytes).unwrap_err();
                    assert_eq!(error.code(), "misuse");
                    n_refused += 1;
                };
                refused(first_row + 1, 1, row_bytes);
                refused(first_row, 1, row_bytes - 1);
                refused(first_row, 0, 0);
                refused(first_row, n_rows + 1, (n_rows as usize + 1) * row_bytes);
                assert!(driver.state.compute(&driver.model).is_err(), "weights are wanted");
            }
            Need::Compute => {
                assert!(driver.state.feed(&driver.model, 0, 1, &[0; 256]).is_err(), "no weights");
            }
            Need::Done => break,
        }
        driver.step();
    }
    assert!(n_refused > 100, "{n_refused} tiles were offered in vain");
    let (difference, _) = worst(driver.state.logits(), &golden.logits);
    assert!(difference <= 2e-4, "and the pass lost nothing: {difference:e}");
}

#[test]
fn a_tile_stays_the_same_until_it_is_used_up() {
    let name = "models/llama-gqa";
    let mut driver = Driver::open(name, &EXACT, &shape(64)).with_tiles(&[8]);
    driver.state.set_bounds(sluice::model::StepBounds { macs_f32: 1, macs_rounded: 1, other: 1 });
    driver.state.begin(&driver.model, &golden(name).prompt, 0, LogitsWanted::All).unwrap();
    let tile = vec![0; 8 * 256];
    loop {
        if let Need::Rows { use_index, first_row, .. } = driver.state.need(&driver.model)
            && driver.model.uses()[use_index].phase == Phase::Layer(0)
        {
            assert_eq!(driver.state.feed(&driver.model, first_row, 8, &tile).unwrap(), Fed::Again);
            assert!(
                driver.state.feed(&driver.model, first_row, 4, &tile[..4 * 256]).is_err(),
                "another tile"
            );
            assert_eq!(driver.state.feed(&driver.model, first_row, 8, &tile).unwrap(), Fed::Again);
            return;
        }
        assert!(driver.step(), "layer 0 comes");
    }
}

#[test]
fn vectors_are_checked_when_they_are_given() {
    let file = fixture("models/llama-ropefreqs-tied.gguf");
    let header = Header::parse(&file).unwrap();
    let mut model = Model::new(&header, &EXACT).unwrap();
    let n_open = model.uses().iter().filter(|u| u.phase == Phase::Open).count();
    assert!(model.uses()[..n_open].iter().all(|u| u.phase == Phase::Open), "they come first");

    let mut state = State::new(&model, &shape(1)).unwrap();
    let error = state.begin(&model, &[1], 0, LogitsWanted::Last).unwrap_err();
    assert_eq!(error.code(), "misuse", "before they are given: {error}");
    assert_eq!(
        model.set_vector(n_open, &[]).unwrap_err().code(),
        "misuse",
        "not of the open phase"
    );
    assert_eq!(model.set_vector(0, &[0; 3]).unwrap_err().code(), "misuse", "another size");

    for index in 0..n_open {
        let u = model.uses()[index];
        let name = header.tensors[u.tensor as usize].name.clone();
        let n = usize::try_from(u.bytes() / 4).unwrap();
        for (bad, refused) in
            [(f32::NAN, true), (f32::INFINITY, true), (0.0, name == "rope_freqs.weight")]
        {
            let mut values = vec![1.0_f32; n];
            values[n - 1] = bad;
            let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            let error = model.set_vector(index, &bytes).err();
            assert_eq!(error.is_some(), refused, "{name} with {bad}");
            if let Some(error) = error {
                assert_eq!(error.code(), "invalid_model");
                assert!(
                    error.message().contains(&name)
                        && error.message().contains(&format!("index {}", n - 1))
                );
            }
        }
    }
}
