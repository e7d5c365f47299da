//! The workflows of the code host: packages, paths and platforms that they name exist.

use crate::files;
use crate::packages::CRATES;

const WORKFLOWS: [&str; 2] = [".github/workflows/release.yml", ".github/workflows/test.yml"];

fn text(path: &str) -> String {
    files::read(path).unwrap_or_else(|| panic!("{path} is missing")).text
}

/// Returns what follows each occurrence of `mark`, up to `end` or the end of the line.
fn after<'a>(text: &'a str, mark: &str, end: char) -> Vec<&'a str> {
    let found = text.split(mark).skip(1);
    found.map(|rest| rest.split(['\n', end]).next().unwrap_or_default().trim()).collect()
}

#[test]
fn workflows_name_packages_that_exist() {
    for workflow in WORKFLOWS {
        for name in after(&text(workflow), "--package ", ' ') {
            let name = name.trim_matches('"');
            assert!(name == "$crate" || CRATES.contains(&name), "{workflow}: {name}");
        }
    }
}

/// cargo finds the order itself.
#[test]
fn all_crates_are_published_at_once() {
    assert!(text(".github/workflows/release.yml").contains("run: packaging/publish\n"));
    assert!(text("packaging/publish").contains("cargo publish --locked --allow-dirty --workspace"));
}

#[test]
fn archive_has_files_that_exist() {
    let release = text(".github/workflows/release.yml");
    let [copied] = after(&release, "cp -r ", '\n')[..] else { panic!("one line copies") };
    let copied: Vec<&str> = copied.split(' ').collect();
    let [command, rest @ .., "archive/"] = &copied[..] else { panic!("{copied:?}") };
    assert_eq!(*command, "target/dist/navlocks");
    for path in rest.iter().chain(&["js/scripts/build-packages.js", "js/package-lock.json", "test"])
    {
        assert!(files::root().join(path).exists(), "{path}");
    }
}

#[test]
fn release_builds_the_platforms_of_the_npm_package() {
    let release = text(".github/workflows/release.yml");
    let built = after(&release, ", platform: ", '}');
    let platforms = text("js/native/platforms.js");
    let known: Vec<String> = after(&platforms, "{ os: ", '}')
        .iter()
        .map(|it| {
            let words = it.split('\'').skip(1).step_by(2);
            words.collect::<Vec<_>>().join("-")
        })
        .collect();
    assert!(!known.is_empty());
    assert_eq!(built, known);
    assert!(release.contains(&format!("dist/binaries-{}/js/packages", known[0])));
}

#[test]
fn actions_are_pinned_by_hash_and_no_token_is_stored() {
    for workflow in WORKFLOWS {
        let text = text(workflow);
        for action in after(&text, "uses: ", ' ').into_iter().filter(|it| !it.starts_with("./")) {
            let (_, hash) = action.split_once('@').unwrap_or_default();
            let is_hash = hash.len() == 40 && hash.chars().all(|it| it.is_ascii_hexdigit());
            assert!(is_hash, "{workflow}: {action}");
        }
        assert!(!text.contains("secrets."), "{workflow}");
    }
}
