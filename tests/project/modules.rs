//! The top-level modules of each crate use each other one way: no circle of imports.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{self, File};
use crate::source::shipped_code;

const CRATES: [&str; 9] = [
    "crates/navlocks-core",
    "crates/navlocks-threads",
    "crates/navlocks-capi",
    "crates/navlocks-wire",
    "crates/navlocks-client",
    "crates/navlocks",
    "crates/navlocks-server",
    "crates/navlocks-dashboard",
    "crates/navlocks-etcd",
];

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_of_a_crate_have_no_import_circle() {
    for folder in CRATES {
        let sources = files::rust_below(&format!("{folder}/src"));
        let graph = graph(&format!("{folder}/src/"), &sources);
        assert!(graph.values().any(|uses| !uses.is_empty()), "{folder}: no import was found");
        let circles = circles(&graph);
        assert!(circles.is_empty(), "{folder}: modules that import each other: {circles:?}");
    }
}

/// Returns the top-level modules that each module of the crate below `folder` uses.
fn graph(folder: &str, sources: &[File]) -> Graph {
    let modules = |path: &str| -> Vec<String> {
        let place = path.strip_prefix(folder).unwrap().strip_suffix(".rs").unwrap();
        let place = place.strip_suffix("/mod").unwrap_or(place);
        place.split('/').map(str::to_owned).collect()
    };
    let is_root = |module: &str| module == "lib" || module == "main";
    let mut graph: Graph = sources
        .iter()
        .map(|file| modules(&file.path)[0].clone())
        .filter(|module| !is_root(module))
        .map(|module| (module, BTreeSet::new()))
        .collect();
    // A re-export of the root belongs to its module.
    let root = sources.iter().find(|file| file.path == format!("{folder}lib.rs")).unwrap();
    let mut passed_on: BTreeMap<String, String> = BTreeMap::new();
    for path in paths(&code(root), "use ") {
        if let [module, .., name] = &path[..]
            && graph.contains_key(module)
        {
            passed_on.insert(name.clone(), module.clone());
        }
    }
    for file in sources {
        let place = modules(&file.path);
        if is_root(&place[0]) {
            continue;
        }
        let code = code(file);
        let from_root = paths(&code, "crate::");
        // Above the first of its folders, a path begins at the root, too.
        let above = paths(&code, &"super::".repeat(place.len()));
        for path in from_root.into_iter().chain(above) {
            let used = passed_on.get(&path[0]).unwrap_or(&path[0]).clone();
            if used != place[0] && graph.contains_key(&used) {
                graph.get_mut(&place[0]).unwrap().insert(used);
            }
        }
    }
    graph
}

fn code(file: &File) -> String {
    let lines: Vec<&str> = shipped_code(&file.text).into_iter().map(|(_, line)| line).collect();
    lines.join("\n")
}

/// Returns all paths that follow `start`, those in braces one by one.
fn paths(code: &str, start: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(start) {
        let before = code[..at].chars().next_back();
        if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
            expand(&code[at + start.len()..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Reads one path, and with braces all its paths. Returns the rest of the code.
fn expand<'a>(code: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut inside) = code.strip_prefix('{') {
        loop {
            inside = expand(inside, before, found).trim_start();
            match inside.strip_prefix(',') {
                Some(rest) if !rest.trim_start().starts_with('}') => inside = rest,
                Some(rest) => return rest.trim_start().strip_prefix('}').unwrap_or(""),
                None => return inside.strip_prefix('}').unwrap_or(""),
            }
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    if name.is_empty() {
        return "";
    }
    before.push(name.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(rest) => expand(rest, before, found),
        None => {
            found.push(before.clone());
            // A rename is skipped.
            match rest.strip_prefix(" as ") {
                Some(rest) => &rest[rest.find([',', ';', '}']).unwrap_or(rest.len())..],
                None => rest,
            }
        }
    };
    before.pop();
    rest
}

/// Returns the groups of modules that import each other in a circle, in order.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reach(graph, module))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for module in graph.keys().filter(|module| reached[module.as_str()].contains(module.as_str())) {
        let both = |other: &&String| {
            let (one, two) = (&reached[module.as_str()], &reached[other.as_str()]);
            one.contains(other.as_str()) && two.contains(module.as_str())
        };
        let circle: Vec<String> = graph.keys().filter(both).cloned().collect();
        if !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// Returns all modules that a module uses, directly or not.
fn reach<'a>(graph: &'a Graph, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = graph[module].iter().map(String::as_str).collect();
    while let Some(used) = next.pop() {
        if reached.insert(used) {
            next.extend(graph[used].iter().map(String::as_str));
        }
    }
    reached
}

#[test]
fn import_circle_is_found_through_braces_supers_and_the_root() {
    let file = |path: &str, text: &str| File::new(format!("x/src/{path}"), text);
    let sources = [
        file("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use c::{C, D as E};\n"),
        file("a.rs", "use crate::{\n    b::B,\n    d::{self, D},\n};\n"),
        file("b/mod.rs", "mod e;\nuse super::C;\n"),
        file("b/e.rs", "use super::F; // crate::d\nfn f(a: super::super::d::D) {}\n"),
        file("c.rs", "fn f() {\n    crate::a::f();\n}\n"),
        file("d.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
    ];
    let graph = graph("x/src/", &sources);
    let uses = |module: &str| graph[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!([uses("a"), uses("b"), uses("c")], [vec!["b", "d"], vec!["c", "d"], vec!["a"]]);
    assert_eq!(circles(&graph), [["a", "b", "c"]]);
}

/// Asserts that the architecture page names every crate, and every folder of their sources.
#[test]
fn architecture_page_names_every_crate_and_folder() {
    let page = files::read("ARCHITECTURE.md").unwrap();
    let named: BTreeSet<&str> =
        page.text.split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).collect();
    let mut rooms = BTreeSet::new();
    for file in files::below(".") {
        let parts: Vec<&str> = file.path.split('/').collect();
        match &parts[..] {
            ["crates", name, "src", folder, _, ..] => {
                rooms.extend([*name, *folder].map(str::to_owned))
            }
            ["js", folder, _, ..] => _ = rooms.insert((*folder).to_owned()),
            _ => {}
        }
    }
    let inner = ["page", "matrix", "peers", "test", "bench", "bin", "examples"];
    rooms.retain(|room| !named.contains(room.as_str()) && !inner.contains(&room.as_str()));
    assert!(rooms.is_empty(), "not in ARCHITECTURE.md: {rooms:?}");
}
