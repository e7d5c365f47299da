//! The tests of the npm package, read from their sources.
//!
//! A row for all runtimes is an object with `id:`, of one or several ids, and `title:` in
//! `js/test/conformance/`. Every other test is a call of `test(` in a `*.test.js`, whose title
//! begins with its ids.

use crate::conformance::Test;
use crate::files::File;

/// Returns all tests among the files of `js/test`.
pub(crate) fn tests(files: &[File]) -> Vec<Test> {
    let mut found = Vec::new();
    for file in files {
        if file.path.contains("/conformance/") {
            found.extend(rows(file));
        } else if file.path.ends_with(".test.js") {
            found.extend(calls(file));
        }
    }
    found
}

fn rows(file: &File) -> Vec<Test> {
    let mut found: Vec<Test> = Vec::new();
    let mut ids = Vec::new();
    for line in file.text.lines().map(str::trim) {
        if let Some(literal) = line.strip_prefix("id: ") {
            let found = literal_at_start(literal).map(|ids| split_ids(&format!("{ids} ")).0);
            ids = found.unwrap_or_default();
        } else if let Some(needs) = line.strip_prefix("needs: ") {
            // The title comes first, so the row is there already.
            found.last_mut().into_iter().for_each(|row| row.needs = needs.to_owned());
        } else if let Some(title) = line.strip_prefix("title: ").and_then(literal_at_start)
            && !ids.is_empty()
        {
            let (place, ids) = (place(file, title), std::mem::take(&mut ids));
            found.push(Test { place, ids, needs: String::new() });
        }
    }
    found
}

fn calls(file: &File) -> Vec<Test> {
    let calls = file.text.lines().filter_map(|line| line.trim_start().strip_prefix("test("));
    calls
        .filter_map(literal_at_start)
        .map(|name| {
            let (ids, title) = split_ids(name);
            Test { place: place(file, title), ids, needs: String::new() }
        })
        .collect()
}

/// Returns the place of a test, without backticks and bars, which have a meaning in Markdown.
fn place(file: &File, title: &str) -> String {
    format!("{}::{}", file.path, title.replace('`', "'").replace('|', "/"))
}

/// Returns the text between the quotes that a text begins with.
fn literal_at_start(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|quote| ['\'', '"', '`'].contains(quote))?;
    text[1..].split_once(quote).map(|(inner, _)| inner)
}

/// Splits a title: `G18 F69 names leave nothing` has two ids.
fn split_ids(mut name: &str) -> (Vec<String>, &str) {
    let mut ids = Vec::new();
    while let Some((word, rest)) = name.split_once(' ') {
        if word == "decision"
            && let Some((number, rest)) = rest.split_once([' ', ':'])
            && is_number(number)
        {
            ids.push(format!("decision {number}"));
            name = rest.trim_start();
        } else if word.starts_with(|letter| "SMGFPQTXDLWHB".contains(letter))
            && is_number(&word[1..])
        {
            ids.push(word.to_owned());
            name = rest;
        } else {
            break;
        }
    }
    (ids, name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn rows_and_calls_are_found_with_their_ids() {
    let rows = "export const a = [\n  {\n    id: 'F01 decision 4',\n    title: \"it's one\",\n    needs: ['b'],\n  },\n  { title: 'none' },\n];";
    let calls = "test('G18 F69 two ids', async () => {});\n  test('decision 4: one', f);\ntest('Deno has none', f);\ntest(`F02 a ${kind}`, f)\nlatest('F03 no', f)";
    let files = [
        File::new("js/test/conformance/a.js", rows),
        File::new("js/test/b.test.js", calls),
        File::new("js/test/c.js", calls),
    ];
    let found = tests(&files);
    let expected = [
        ("js/test/conformance/a.js::it's one", vec!["F01", "decision 4"]),
        ("js/test/b.test.js::two ids", vec!["G18", "F69"]),
        ("js/test/b.test.js::one", vec!["decision 4"]),
        ("js/test/b.test.js::Deno has none", vec![]),
        ("js/test/b.test.js::a ${kind}", vec!["F02"]),
    ];
    let expected: Vec<Test> = expected
        .into_iter()
        .map(|(place, ids)| Test {
            place: place.to_owned(),
            ids: ids.into_iter().map(String::from).collect(),
            needs: if place.contains("/a.js") { "['b'],".to_owned() } else { String::new() },
        })
        .collect();
    assert_eq!(found, expected);
}
