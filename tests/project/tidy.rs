//! Rules of the source: links above the standard's algorithms, small files, no panics on bad input.
//!
//! Every check is a function from files to violations, and a test shows that it finds one.

use crate::files::{self, File};
use crate::source::{functions, shipped_code, test_modules};

mod rule;
mod sizes;
mod words;

const STANDARD: &str = "https://w3c.github.io/web-locks/#";

/// The standard's algorithms by the name the engine gives them, with the anchors of their
/// definition and section.
const ALGORITHMS: [(&str, &[&str]); 8] = [
    ("get_the_lock_request_queue", &["get-the-lock-request-queue"]),
    ("grantable", &["grantable"]),
    ("terminate_remaining_locks_and_requests", &["terminate-remaining-locks-and-requests"]),
    ("request_a_lock", &["request-a-lock", "algorithm-request-lock"]),
    ("release_the_lock", &["release-the-lock", "algorithm-release-lock"]),
    ("abort_the_request", &["abort-the-request", "algorithm-abort-request"]),
    (
        "process_the_lock_request_queue",
        &["process-the-lock-request-queue", "algorithm-process-request"],
    ),
    ("snapshot_the_lock_state", &["snapshot-the-lock-state", "algorithm-snapshot-state"]),
];

/// Other anchors of the standard that may be linked to.
const DEFINITIONS: [&str; 24] = [
    "api-lock",
    "api-lock-manager",
    "concept-lock",
    "concept-lock-request",
    "deadlocks",
    "dictdef-lockinfo",
    "dictdef-lockmanagersnapshot",
    "dictdef-lockoptions",
    "enumdef-lockmode",
    "lock",
    "lock-concept",
    "lock-manager",
    "lock-manager-held-lock-set",
    "lock-manager-lock-request-queue-map",
    "lock-managers",
    "lock-request",
    "lock-request-queue",
    "lockmanager",
    "modes-scheduling",
    "obtain-a-lock-manager",
    "resource-name",
    "resource-names",
    "signal-to-abort-the-request",
    "termination-of-locks",
];

#[test]
fn every_algorithm_of_the_standard_is_linked_and_stepped() {
    assert_clean(&missing_algorithms(&core()));
    assert_clean(&bare_algorithms(&core()));
}

#[test]
fn steps_are_below_a_link() {
    assert_clean(&steps_without_link(&core()));
    assert_clean(&dead_links(&shipped()));
}

#[test]
fn files_begin_with_a_summary() {
    assert_clean(&silent_files(&core()));
}

#[test]
fn shipped_code_does_not_unwrap() {
    assert_clean(&unwraps(&shipped()));
}

#[test]
fn files_have_no_leftovers_and_no_machine_paths() {
    let all = files::below(".");
    assert!(all.len() > 20, "the walk found only {} files", all.len());
    assert_clean(&leftovers(&all));
    assert_clean(&machine_paths(&all));
}

/// The clone may be in a folder with a space in its path.
#[test]
fn scripts_of_tests_quote_the_path_of_the_program() {
    let tests = files::rust_below("crates/navlocks-cli/tests/command");
    assert_clean(&lines_with(&tests, &["$NL ", "program().display()"]));
}

fn core() -> Vec<File> {
    files::rust_below("crates/navlocks-core/src")
}

/// Returns the shipped sources: all crates, without tests.
fn shipped() -> Vec<File> {
    without_tests(files::rust_below("crates"))
}

/// Drops the test folders of packages and the modules that only tests have.
fn without_tests(mut sources: Vec<File>) -> Vec<File> {
    sources.retain(|file| file.path.contains("src/"));
    let mut tests = Vec::new();
    for file in &sources {
        // Modules of `x.rs` are in `x/`, those of `lib.rs` and `mod.rs` beside it.
        let folder = &file.path[..=file.path.rfind('/').unwrap()];
        let below = format!("{}/", file.path.trim_end_matches(".rs"));
        for name in test_modules(&file.text) {
            tests.extend([folder, &below].map(|folder| format!("{folder}{name}.rs")));
        }
    }
    sources.retain(|file| !tests.contains(&file.path));
    sources
}

fn assert_clean(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// Finds algorithms without a function of that name.
fn missing_algorithms(sources: &[File]) -> Vec<String> {
    ALGORITHMS
        .iter()
        .filter(|(name, _)| {
            let mut all = sources.iter().flat_map(|file| functions(&file.text));
            !all.any(|function| function.name == *name)
        })
        .map(|(name, _)| format!("no function is named {name}"))
        .collect()
}

/// Functions named after an algorithm without its link directly above or without its steps inside.
fn bare_algorithms(sources: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in sources {
        for function in functions(&file.text) {
            let Some((name, anchors)) = ALGORITHMS.iter().find(|(name, _)| *name == function.name)
            else {
                continue;
            };
            let place = format!("{}:{}: {name}", file.path, function.line);
            let linked = function
                .above
                .iter()
                .flat_map(|line| links(line))
                .any(|anchor| anchors.contains(&anchor));
            if !linked {
                violations.push(format!("{place} has no link to {STANDARD}{}", anchors[0]));
            }
            if !function.body.iter().any(|line| is_step(line)) {
                violations.push(format!("{place} has no `// Step N` inside"));
            }
        }
    }
    violations
}

/// Finds functions with steps of the standard and without its link.
fn steps_without_link(sources: &[File]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in sources {
        for function in functions(&file.text) {
            let stepped = function.body.iter().any(|line| is_step(line));
            let linked = function.above.iter().any(|line| line.contains("https://"));
            if stepped && !linked {
                violations.push(format!(
                    "{}:{}: {} has steps but no link above",
                    file.path, function.line, function.name
                ));
            }
        }
    }
    violations
}

/// Finds links to places that the standard does not have.
fn dead_links(sources: &[File]) -> Vec<String> {
    let mut known: Vec<&str> = DEFINITIONS.to_vec();
    known.extend(ALGORITHMS.iter().flat_map(|(_, anchors)| *anchors));
    let mut violations = Vec::new();
    for file in sources {
        for (index, line) in file.text.lines().enumerate() {
            for anchor in links(line).filter(|anchor| !known.contains(anchor)) {
                let number = index + 1;
                violations.push(format!("{}:{number}: no such place: #{anchor}", file.path));
            }
        }
    }
    violations
}

fn is_step(line: &str) -> bool {
    let number = line.trim_start().strip_prefix("// Step ");
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the anchors of the standard that a line links to.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split(STANDARD).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        &rest[..end.unwrap_or(rest.len())]
    })
}

fn silent_files(sources: &[File]) -> Vec<String> {
    sources
        .iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}: does not begin with a `//!` line", file.path))
        .collect()
}

fn unwraps(sources: &[File]) -> Vec<String> {
    let panics = [".unwrap()", ".expect(", "::unwrap)", "::unwrap("];
    let mut violations = Vec::new();
    for file in sources {
        for (number, line) in shipped_code(&file.text) {
            if panics.iter().any(|panic| line.contains(panic)) {
                violations.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    violations
}

/// Finds comments for later. Their words are in halves here, because this file is searched too.
fn leftovers(texts: &[File]) -> Vec<String> {
    lines_with(
        texts,
        &[
            concat!("// TO", "DO"),
            concat!("# TO", "DO"),
            concat!("// FIX", "ME"),
            concat!("# FIX", "ME"),
        ],
    )
}

/// Finds paths of one machine.
fn machine_paths(texts: &[File]) -> Vec<String> {
    let mut texts = texts.to_vec();
    for file in &mut texts {
        // The default folder of a user's own service exists on every machine.
        file.text = file.text.replace(concat!("/tm", "p/navlocks-%U/"), "");
    }
    lines_with(
        &texts,
        &[
            concat!("/ho", "me/"),
            concat!("/ro", "ot/"),
            concat!("/Us", "ers/"),
            concat!("/tm", "p/"),
            concat!("/wo", "rk/"),
        ],
    )
}

fn lines_with(texts: &[File], words: &[&str]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in texts {
        for (index, line) in file.text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                violations.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    violations
}

/// Each check on a snippet that has exactly the one fault.
mod finds {
    use super::*;

    fn one(text: &str) -> [File; 1] {
        [File::new("bad.rs", text)]
    }

    #[test]
    fn missing_algorithm_is_found() {
        let violations = missing_algorithms(&one("fn grantable() {}\n"));
        assert_eq!(violations.len(), ALGORITHMS.len() - 1);
        assert!(!violations.iter().any(|v| v.ends_with(" grantable")));
    }

    #[test]
    fn algorithm_without_link_is_found() {
        let text = "/// Says much.\nfn grantable() {\n    // Step 1.\n}\n";
        let link = "bad.rs:2: grantable has no link to https://w3c.github.io/web-locks/#grantable";
        assert_eq!(bare_algorithms(&one(text)), [link]);
    }

    #[test]
    fn algorithm_with_another_link_is_found() {
        let text = "/// <https://w3c.github.io/web-locks/#release-the-lock>\nfn grantable() {\n    // Step 1.\n}\n";
        assert_eq!(bare_algorithms(&one(text)).len(), 1);
    }

    #[test]
    fn algorithm_with_a_gap_below_its_link_is_found() {
        let text = "/// <https://w3c.github.io/web-locks/#grantable>\n\nfn grantable() {\n    // Step 1.\n}\n";
        assert_eq!(bare_algorithms(&one(text)).len(), 1);
    }

    #[test]
    fn algorithm_without_steps_is_found() {
        let text = "/// <https://w3c.github.io/web-locks/#grantable>\nfn grantable() {\n    true\n}\n// Step 1.\n";
        assert_eq!(bare_algorithms(&one(text)), ["bad.rs:2: grantable has no `// Step N` inside"]);
    }

    #[test]
    fn good_algorithm_has_no_violation() {
        let text = "/// <https://w3c.github.io/web-locks/#grantable>\nfn grantable() {\n    // Step 1.\n}\n";
        assert!(bare_algorithms(&one(text)).is_empty());
        assert!(steps_without_link(&one(text)).is_empty());
    }

    #[test]
    fn steps_without_link_are_found() {
        let text = "fn helper() {\n    // Step 2.1. If so.\n}\n";
        assert_eq!(
            steps_without_link(&one(text)),
            ["bad.rs:1: helper has steps but no link above"]
        );
    }

    #[test]
    fn dead_link_is_found() {
        let text = "/// <https://w3c.github.io/web-locks/#grantable> <https://w3c.github.io/web-locks/#nowhere>\n";
        assert_eq!(dead_links(&one(text)), ["bad.rs:1: no such place: #nowhere"]);
    }

    #[test]
    fn file_without_summary_is_found() {
        assert!(silent_files(&one("//! Says.\n")).is_empty());
        assert_eq!(silent_files(&one("use x;\n//! Late.\n")).len(), 1);
    }

    #[test]
    fn unwrap_is_found() {
        let text = "/// a.unwrap()\n#[expect(lint)]\nfn a() {\n    b.expect(\"c\"); // d.unwrap()\n}\n#[cfg(test)]\nmod tests {\n    e.unwrap();\n}\nfn f() {\n    g.map(Option::unwrap);\n}\n";
        assert_eq!(
            unwraps(&one(text)),
            ["bad.rs:4: b.expect(\"c\");", "bad.rs:11: g.map(Option::unwrap);"]
        );
    }

    #[test]
    fn unwrap_in_test_module_is_not_found() {
        let lib = File::new("a/src/lib.rs", "#[cfg(test)]\nmod cost;\nmod grant;\n");
        let others = ["a/src/cost.rs", "a/src/grant.rs", "a/tests/b.rs"];
        let mut sources: Vec<File> = others.map(|path| File::new(path, "c.unwrap()\n")).into();
        sources.push(lib);
        assert_eq!(unwraps(&without_tests(sources)), ["a/src/grant.rs:1: c.unwrap()"]);
    }

    #[test]
    fn leftover_and_machine_path_are_found() {
        let text = concat!("// TO", "DO later\nopen(\"/ho", "me/me/x\")\n");
        assert_eq!(leftovers(&one(text)).len(), 1);
        assert_eq!(machine_paths(&one(text)).len(), 1);
    }
}
