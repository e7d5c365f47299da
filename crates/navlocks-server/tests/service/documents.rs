//! `docs/wire.md` tells the truth: its examples are messages, written as they are written on the
//! wire, and none is missing.

use std::collections::BTreeSet;
use std::path::Path;

use navlocks_wire::{self as wire, ToClient, ToService};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::running::Running;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    std::fs::read_to_string(path).expect("the document is there")
}

/// The lines of all blocks whose fence says this.
fn examples(document: &str, fence: &str) -> Vec<String> {
    let mut examples = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(info) => inside = info == fence,
            None if inside => examples.push(line.to_owned()),
            None => {}
        }
    }
    assert!(!examples.is_empty(), "no block says {fence}");
    examples
}

/// The kinds of message that there are, from what is said about one that there is not.
fn kinds<M: DeserializeOwned>() -> BTreeSet<String> {
    let Err(fault) = wire::read::<M>(r#"{"?":0}"#) else { panic!("`?` is a message") };
    let (_, expected) = fault.message.split_once("expected one of").expect("a list of kinds");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn check<M: Serialize + DeserializeOwned>(document: &str, fence: &str) {
    let mut shown = BTreeSet::new();
    for line in examples(document, fence) {
        let message: M = wire::read(&line).unwrap_or_else(|fault| panic!("{fault}: {line}"));
        assert_eq!(wire::write(&message), line);
        let kind = line.split('"').nth(1).expect("a kind");
        assert!(document.contains(&format!("`{kind}`")), "{kind} has no heading");
        shown.insert(kind.to_owned());
    }
    assert_eq!(shown, kinds::<M>(), "each kind of message has an example");
}

#[test]
fn every_message_has_an_example_and_every_example_is_a_message() {
    let document = document();
    check::<ToService>(&document, "json to-service");
    check::<ToClient>(&document, "json to-client");
    for fence in document.lines().filter_map(|line| line.strip_prefix("```")) {
        let known = ["", "json to-service", "json to-client", "text conversation"];
        assert!(known.contains(&fence), "a block that no test checks: {fence}");
    }
}

#[test]
fn every_fault_has_a_row() {
    let document = document();
    for code in kinds_of_fault() {
        assert!(document.contains(&format!("`{code}`")), "{code} is not explained");
    }
}

/// The codes that the service sends, from the source of truth: what each is called on the wire.
fn kinds_of_fault() -> Vec<String> {
    use wire::FaultCode as Code;
    let codes = [
        Code::BadMessage,
        Code::BadState,
        Code::Unauthorized,
        Code::ForbiddenOrigin,
        Code::UnknownSession,
        Code::Limit,
        Code::SlowReader,
        Code::LeaseLapsed,
        Code::Replaced,
        Code::ShuttingDown,
        Code::Internal,
    ];
    codes.iter().map(|code| wire::write(code).trim_matches('"').to_owned()).collect()
}

/// Returns true if a text is as the pattern says, whose `…` stand for any characters.
pub(crate) fn is_like(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('…') else { return text == pattern };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len())
        .filter(|&end| text.is_char_boundary(end))
        .any(|end| is_like(&text[end..], rest))
}

#[test]
fn the_conversation_takes_place() {
    let service = Running::start();
    let mut client = Client::silent(crate::client::unix_stream(service.unix()));
    for line in examples(&document(), "text conversation") {
        if let Some(said) = line.strip_prefix("→ ") {
            client.say(said);
        } else if let Some(expected) = line.strip_prefix("← ") {
            let heard = client.hear_text();
            assert!(is_like(&heard, expected), "heard {heard}, expected {expected}");
        } else {
            panic!("neither said nor heard: {line}");
        }
    }
}
