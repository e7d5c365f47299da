//! Messages of services of earlier versions are understood: `tests/compat` has them.

use std::path::Path;

use navlocks_wire::{ToClient, read};

#[test]
fn messages_of_each_version_of_services_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat");
    let versions = std::fs::read_dir(folder).expect("the recorded versions");
    let mut count = 0;
    for version in versions.map(|entry| entry.expect("an entry").path()) {
        let Ok(text) = std::fs::read_to_string(version.join("messages.jsonl")) else { continue };
        for line in text.lines() {
            read::<ToClient>(line).unwrap_or_else(|fault| panic!("{fault}: {line}"));
            // A member of a later version changes nothing.
            let later = line.replacen(r#"{"id":"#, r#"{"later":[{"a":1}],"id":"#, 1);
            assert_eq!(read::<ToClient>(&later), read::<ToClient>(line), "{later}");
            count += 1;
        }
    }
    assert!(count > 20, "{count} messages are recorded");
}
