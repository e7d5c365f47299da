//! `docs/restarts.md` names tests that exist.

use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../docs/restarts.md");
const FOLDERS: [&str; 9] = [
    "tests/faults",
    "tests/simulation",
    "crates/navlocks-server/tests/abuse",
    "crates/navlocks-server/tests/service",
    "crates/navlocks-server/tests/service/reclaim",
    "crates/navlocks-server/src/store",
    "crates/navlocks-server/src/store/registry",
    "crates/navlocks/tests/remote",
    "crates/navlocks-cli/tests/command",
];

/// Returns all Rust source of these folders.
fn source() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut source = String::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                source += &fs::read_to_string(path).expect("it can be read");
            }
        }
    }
    source
}

#[test]
fn restarts_page_names_tests_that_exist() {
    let source = source();
    let words = PAGE.split('`').skip(1).step_by(2);
    let tests: Vec<&str> = words.filter(|word| word.matches('_').count() > 3).collect();
    assert!(tests.len() > 20, "{tests:?}");
    for test in tests.iter().filter(|test| !test.contains('=')) {
        assert!(source.contains(&format!("fn {test}()")), "{test} is no test");
    }
}
