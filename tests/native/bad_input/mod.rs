//! Everything that a file or a caller can get wrong, as a kind: each is an error with a code, whose message names the culprit,
//! and nothing that comes after it suffers. `docs/errors.md` is the table for people; `doc` holds the two together.

mod attempt;
mod doc;
mod files;
mod generation;
mod metadata;
mod options;
mod sources;
mod tensors;
mod vocabulary;
mod weights;

use attempt::Attempt;

/// A fault of a model file, of its source or of the options to open it with.
pub(crate) struct Case {
    /// What is wrong, word for word as in the table of `docs/errors.md`.
    what: &'static str,
    /// The code that it gives.
    code: &'static str,
    /// What the message says: the culprit, what was found, and the remedy where there is one.
    says: &'static [&'static str],
    /// Makes it wrong.
    spoil: fn(&mut Attempt),
}

/// All cases of opening that have a row in the table.
fn cases() -> impl Iterator<Item = &'static Case> {
    [files::CASES, metadata::CASES, tensors::CASES, vocabulary::CASES, options::CASES]
        .into_iter()
        .flatten()
}

/// Opens what each case makes of a sound model, and a sound model after it.
fn refuse_all(cases: &[Case]) {
    for Case { what, code, says, spoil } in cases {
        let mut attempt = Attempt::sound();
        attempt.assert_works(what);
        spoil(&mut attempt);
        let error = attempt.open().err().unwrap_or_else(|| panic!("{what}: accepted"));
        assert_says(what, &error, code, says);
        Attempt::sound().assert_works(what);
    }
}

/// The error has the code and names all of `says`.
fn assert_says(what: &str, error: &sluice::error::Error, code: &str, says: &[&str]) {
    assert_eq!(error.code(), code, "{what}: {error}");
    for part in says {
        assert!(error.message().contains(part), "{what}: '{part}' is not in: {error}");
    }
}
