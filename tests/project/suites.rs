//! The suites of measurements: each is explained, and runs in `./test soak`.

use crate::files;

#[test]
fn every_suite_is_explained_and_runs_in_a_soak() {
    let sources = files::rust_below("bench/src/suites");
    let declared = sources.iter().filter_map(|file| file.text.split_once("SUITE: Suite = Suite {"));
    let names: Vec<&str> =
        declared.map(|(_, suite)| suite.split('"').nth(1).unwrap_or_default()).collect();
    assert!(names.len() > 5, "{names:?}");
    let text = |path: &str| files::read(path).unwrap_or_else(|| panic!("{path} is missing")).text;
    let (page, script) = (text("bench/README.md"), text("test"));
    let stage = script.lines().find(|line| line.contains("for suite in ")).expect("the stage");
    for name in names {
        assert!(page.contains(&format!("## Suite `{name}`")), "{name} is not explained");
        assert!(page.contains(&format!("-p bench -- {name} ")), "{name} has no command");
        let is_run = stage.split([' ', ';']).any(|word| word == name);
        assert!(is_run, "{name} is not in the stage bench");
    }
}
