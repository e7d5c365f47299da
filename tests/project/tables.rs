//! Tables that both Rust and JavaScript have are equal.

use std::collections::BTreeMap;

use navlocks_core::{Mode, Wait};
use navlocks_wire::{FaultCode, LossCause, Names, Request};

use crate::files;

/// All waits, in the order of their numbers in JavaScript.
const WAITS: [Wait; 5] =
    [Wait::Queue, Wait::IfAvailable, Wait::Steal, Wait::StealAll, Wait::Overtake];

fn read(path: &str) -> String {
    let found = files::below(".").into_iter().find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("{path} is missing")).text
}

/// Returns the text between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} after {start:?}")).0
}

/// Returns the items of a JavaScript array, without their quotes.
fn items(array: &str) -> Vec<String> {
    let words = array.split(',').map(|word| word.trim().trim_matches('\'').to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the members of a JavaScript object, one a line: `'key': value,`.
fn members(object: &str) -> BTreeMap<String, String> {
    let members =
        object.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
    let bare = |text: &str| text.trim_matches('\'').to_owned();
    members.map(|(key, value)| (bare(key), bare(value))).collect()
}

/// Returns the arms of a Rust match: `pattern => value,`.
fn arms(body: &str) -> Vec<(String, String)> {
    let arms = body.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(" => "));
    arms.map(|(pattern, value)| (pattern.to_owned(), value.to_owned())).collect()
}

fn kebab(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it is a word").trim_matches('"').to_owned()
}

#[test]
fn waits_have_the_same_names_and_numbers() {
    let wire = read("js/service/wire.js");
    let names = items(between(&wire, "const WAITS = [", "]"));
    let functions = read("js/native/src/request.rs");
    let numbers = arms(between(&functions, "let wait = match how & 7 {", "_ =>"));
    assert_eq!((names.len(), numbers.len()), (WAITS.len(), WAITS.len()));
    for (number, wait) in WAITS.into_iter().enumerate() {
        let scope = Names("a".into());
        let request = Request {
            id: 1,
            client: 0,
            names: scope,
            mode: Mode::Shared,
            wait,
            tag: None,
            traceparent: None,
            max_hold_ms: None,
            within: None,
            token: None,
            place: None,
            ms: None,
        };
        let said = serde_json::to_value(&request).expect("a request is JSON");
        let name = said.get("wait").and_then(|name| name.as_str()).unwrap_or("undefined");
        assert_eq!(names[number], name, "{wait:?} in js/service/wire.js");
        assert_eq!(numbers[number], (number.to_string(), format!("Wait::{wait:?}")));
    }
}

#[test]
fn causes_of_loss_have_the_same_names_and_numbers() {
    let wire = members(between(&read("js/service/wire.js"), "const CAUSES = {", "};"));
    let told = [
        LossCause::ForceReleased,
        LossCause::Evicted,
        LossCause::HeldTooLong,
        LossCause::Suspended,
        LossCause::ClientEnded,
        LossCause::NotReclaimed,
    ];
    let expected: BTreeMap<String, String> =
        told.iter().map(|cause| (kebab(cause), format!("{cause:?}"))).collect();
    assert_eq!(wire, expected, "js/service/wire.js; a theft has its own form");

    let native = items(between(&read("js/native/columns.js"), "const CAUSES = [", "]"));
    let mail = read("js/native/src/mail.rs");
    let numbers = arms(between(&mail, "fn number(cause: LossCause) -> f64 {", "\n}"));
    // The end of a client is no cause of the engine.
    assert_eq!(numbers.len() + 1, native.len());
    assert_eq!(between(&mail, "const CLIENT_ENDED: f64 = ", ".0;"), numbers.len().to_string());
    assert_eq!(native[numbers.len()], "ClientEnded");
    for (number, (pattern, value)) in numbers.into_iter().enumerate() {
        assert_eq!(value, format!("{number}.0"));
        let variant = pattern.trim_start_matches("LossCause::").trim_end_matches(" { .. }");
        assert_eq!(native[number], variant, "js/native/columns.js");
    }
}

#[test]
fn faults_are_the_same_errors() {
    let refusals = read("js/service/refusals.js");
    let table = members(between(&refusals, "const REFUSALS = {", "// ----"));
    let expected: BTreeMap<String, String> = FaultCode::ALL
        .iter()
        .map(|code| {
            let (error, last) = (code.dom_exception_name(), code.is_final());
            (kebab(code), format!("{{ error: '{error}', final: {last} }}"))
        })
        .collect();
    assert_eq!(table, expected);
    let other = FaultCode::Other;
    assert!(refusals.contains(&format!(
        "const OTHER = {{ error: '{}', final: {} }};",
        other.dom_exception_name(),
        other.is_final()
    )));
}

#[test]
fn mail_of_the_addon_has_the_same_numbers() {
    let js = read("js/native/native.js");
    let mail = read("js/native/src/mail.rs");
    for kind in ["GRANTED", "UNAVAILABLE", "LOST", "CONTENDED", "EVENTS"] {
        let own = between(&mail, &format!("const {kind}: u8 = "), ";");
        assert_eq!(between(&js, &format!("const {kind} = "), ";"), own, "{kind}");
    }
    let columns = read("js/native/columns.js");
    let types = items(between(&columns, "const EVENT_TYPES = [", "]"));
    for (number, kind) in types.iter().enumerate() {
        let own = between(&mail, &format!("const {}: u8 = ", kind.to_uppercase()), ";");
        assert_eq!(own, number.to_string(), "{kind}");
    }
    let array = read("js/native/array.js");
    for (rust, javascript) in [("MAIL_START", "MAIL"), ("MAIL_LENGTH", "MAIL_LENGTH")] {
        let own = between(&mail, &format!("const {rust}: usize = "), ";");
        assert_eq!(between(&array, &format!("const {javascript} = "), ";"), own);
    }
    let report = read("js/native/src/report.rs");
    let own = between(&report, "const ENTRY_LENGTH: usize = ", ";");
    assert_eq!(between(&columns, "const ENTRY = ", ";"), own);
}
