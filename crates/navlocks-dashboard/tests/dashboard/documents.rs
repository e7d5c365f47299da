//! `docs/dashboard.md` tells the truth: its questions are messages, and none is missing.

use std::collections::BTreeSet;
use std::path::Path;

use navlocks_dashboard::view::{Asked, View};
use navlocks_wire as wire;

/// The kinds of question that there are, from what is said about one that there is not.
fn kinds() -> BTreeSet<String> {
    let Err(fault) = wire::read::<View>(r#"{"?":0}"#) else { panic!("`?` is a question") };
    let (_, expected) = fault.message.split_once("expected one of").expect("a list of kinds");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_question_of_the_page_has_an_example_and_every_example_is_a_question() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dashboard.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    let (_, examples) = document.split_once("```json question\n").expect("a block of questions");
    let (examples, _) = examples.split_once("```").expect("its end");
    let mut shown = BTreeSet::new();
    for line in examples.lines() {
        let asked: Asked = wire::read(line).unwrap_or_else(|fault| panic!("{fault}: {line}"));
        assert_eq!(wire::write(&asked), line);
        let view = wire::write(&asked.view);
        shown.insert(view.split('"').nth(1).expect("a kind").to_owned());
    }
    assert_eq!(shown, kinds());
}
