//! `docs/restarts.md` names tests that exist.

use crate::files;

const FOLDERS: [&str; 6] = [
    "tests/faults",
    "tests/simulation",
    "crates/navlocks-server/tests",
    "crates/navlocks-server/src/store",
    "crates/navlocks/tests/remote",
    "crates/navlocks-cli/tests/command",
];

#[test]
fn restarts_page_names_tests_that_exist() {
    let page = files::read("docs/restarts.md").unwrap();
    let sources: Vec<_> = FOLDERS.into_iter().flat_map(files::rust_below).collect();
    let words = page.text.split('`').skip(1).step_by(2);
    let tests: Vec<&str> = words.filter(|word| word.matches('_').count() > 3).collect();
    assert!(tests.len() > 20, "{tests:?}");
    for test in tests.iter().filter(|test| !test.contains('=')) {
        let heading = format!("fn {test}()");
        let exists = sources.iter().any(|file| file.text.contains(&heading));
        assert!(exists, "{test} is no test");
    }
}
