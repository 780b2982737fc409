//! The table of `docs/errors.md` and the tests say the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::generation::CALLS;

/// A row of a table: what is wrong, the code, and the test that holds it.
struct Row {
    what: String,
    code: String,
    test: String,
}

fn rows() -> Vec<Row> {
    let page = source("docs/errors.md");
    let cells = page.lines().filter(|line| line.starts_with("| ")).map(|line| {
        let inner = line.trim_start_matches("| ").trim_end_matches('|').trim_end();
        inner.split(" | ").map(str::trim).collect::<Vec<_>>()
    });
    cells
        .filter(|cells| cells.len() == 4 && cells[1].starts_with('`'))
        .map(|cells| Row {
            what: cells[0].to_owned(),
            code: cells[1].trim_matches('`').to_owned(),
            test: cells[3].to_owned(),
        })
        .collect()
}

fn source(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_case_has_its_row_and_every_row_its_case() {
    let mut cases: BTreeMap<&str, &str> =
        super::cases().map(|case| (case.what, case.code)).collect();
    cases.extend(CALLS.iter().map(|call| (call.what, call.code)));
    assert_eq!(cases.len(), super::cases().count() + CALLS.len(), "no name stands twice");
    let rows = rows();
    for Row { what, code, .. } in rows.iter().filter(|row| row.test == "bad_input") {
        assert_eq!(cases.remove(what.as_str()), Some(code.as_str()), "'{what}' of docs/errors.md");
    }
    assert!(cases.is_empty(), "docs/errors.md lacks: {cases:?}");
}

#[test]
fn every_test_that_is_named_exists() {
    let mut n_named = 0;
    for Row { what, test, .. } in rows().iter().filter(|row| row.test != "bad_input") {
        let (file, name) = test.split_once("`: ").unwrap_or_else(|| panic!("'{what}': {test}"));
        let (file, name) = (source(file.trim_start_matches('`')), name.trim_matches('`'));
        let exists = file.contains(&format!("fn {name}("))
            || file.contains(&format!("'{name}'"))
            || file.contains(&format!("\"{name}\""));
        assert!(exists, "'{what}' of docs/errors.md: there is no test '{name}'");
        n_named += 1;
    }
    assert!(n_named > 10, "{n_named} rows name a test");
}
