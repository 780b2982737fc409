//! The codes that JS matches on.

use sluice::error::{Error, ErrorKind};

#[test]
fn the_codes_are_those_that_the_package_has() {
    // The tests of js/ compare the package's list with the same file.
    let listed: Vec<String> =
        serde_json::from_str(include_str!("../fixtures/error-codes.json")).unwrap();
    let codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    assert_eq!(codes, listed);
}

#[test]
fn an_error_carries_kind_message_and_facts() {
    let error =
        Error::new(ErrorKind::SourceFailed, "no bytes").with("status", 404).with("url", "u");
    assert_eq!((error.code(), error.to_string().as_str()), ("source_failed", "no bytes"));
    let reworded = error.with("url", "v").reworded("no bytes of a tensor");
    assert_eq!((reworded.code(), reworded.message()), ("source_failed", "no bytes of a tensor"));
    assert_eq!(reworded.details(), [("status", 404.into()), ("url", "v".into())]);
}
