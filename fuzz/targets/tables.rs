//! Damaged files in a state folder. A service that starts there either gives an error or works: it
//! never panics, and its sessions agree with its engines.
//!
//! The folder is that of a killed service with sessions, locks and waiters. Four bytes of the input
//! are one damage: a file, a place, and a byte that is changed there, or the file's new end.

#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
mod rehearsal;

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use navlocks_server::{DeadlockPolicy, Limits};
use rehearsal::Rehearsal;

/// The names and contents of the files of a killed service.
type Files = Vec<(String, Vec<u8>)>;

fuzz_target!(|data: &[u8]| {
    static BEFORE: OnceLock<Files> = OnceLock::new();
    let mut files = BEFORE.get_or_init(killed).clone();
    data.chunks_exact(4).take(64).for_each(|it| damage(&mut files, [it[0], it[1], it[2], it[3]]));
    let folder = emptied("damaged");
    for (name, content) in &files {
        fs::write(folder.join(name), content).expect("a file");
    }
    let Ok(mut service) = Rehearsal::with_state_folder(&folder, limits(), DeadlockPolicy::Report)
    else {
        return;
    };
    service.check();
    let client = service.connect(true);
    service.say(client, r#"{"hello":{}}"#);
    for id in 1..4 {
        service.say(client, &format!(r#"{{"request":{{"id":{id},"names":["{id}"]}}}}"#));
        service.check();
    }
    // All earlier sessions end, and their locks pass on.
    service.pass(Duration::from_secs(3600));
    service.check();
    service.cut(client);
    service.check();
});

fn limits() -> Limits {
    Limits::default().with(|limits| limits.lease_default = Duration::from_secs(1))
}

/// Returns an empty folder of this process.
fn emptied(name: &str) -> PathBuf {
    // In memory, where writing through to a disk costs nothing.
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = parent.join(format!("navlocks-{name}-{}", std::process::id()));
    let _missing = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    folder
}

/// Returns the files of a service that was killed with two clients, their locks and waiters.
fn killed() -> Files {
    let folder = emptied("before");
    let mut service = Rehearsal::with_state_folder(&folder, limits(), DeadlockPolicy::Report)
        .expect("an empty folder");
    for is_local in [false, true] {
        let client = service.connect(is_local);
        service.say(client, r#"{"hello":{}}"#);
        for (id, names) in [(1, r#""1""#), (2, r#""2","3""#), (3, r#""2""#)] {
            let mode = if id == 3 { r#","mode":"shared""# } else { "" };
            service.say(client, &format!(r#"{{"request":{{"id":{id},"names":[{names}]{mode}}}}}"#));
        }
    }
    let entries = fs::read_dir(&folder).expect("the folder");
    let files = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let mut files: Files = files
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("a file"))
        })
        .collect();
    files.sort();
    drop(service);
    fs::remove_dir_all(folder).expect("the folder");
    files
}

fn damage(files: &mut Files, [file, high, low, byte]: [u8; 4]) {
    let count = files.len();
    let (_, content) = &mut files[usize::from(file & 0x7f) % count];
    let place = usize::from(u16::from_be_bytes([high, low])) % content.len().max(1);
    if file & 0x80 != 0 {
        content.truncate(place);
    } else if let Some(changed) = content.get_mut(place) {
        *changed = byte;
    }
}
