//! A service understands the conversations and state folders of earlier versions, which
//! `tests/compat` has.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use navlocks_wire::Welcome;

use crate::client::{Client, tcp_stream};
use crate::documents::is_like;
use crate::running::{Folder, Running};

/// The bytes of a slot, and of an empty table of a state folder of version 2.
const SLOT_BYTES: usize = 64;
const TABLE_BYTES: usize = 4096 * SLOT_BYTES;
const TABLES: [&str; 2] = ["sessions.table", "requests.table"];
/// The bytes of a table's header with the start of the machine.
const BOOT: std::ops::Range<usize> = 16..32;

fn recorded(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat");
    let entries = std::fs::read_dir(folder).expect("the recorded versions");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_meant = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    let found: Vec<PathBuf> = paths.filter(is_meant).collect();
    assert!(!found.is_empty(), "there is no {prefix}*");
    found
}

/// Plays a conversation: `A → message`, `A ← message`, and `A breaks`. Each client has a letter,
/// and `…` stands for what varies.
fn play(path: &Path, address: SocketAddr, subprotocol: &str) {
    let mut clients: HashMap<&str, Client> = HashMap::new();
    let text = std::fs::read_to_string(path).expect("a conversation");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, rest) = line.split_once(' ').expect("a client");
        if rest == "breaks" {
            clients.remove(name);
            continue;
        }
        let client = clients
            .entry(name)
            .or_insert_with(|| Client::speaking(tcp_stream(address), subprotocol));
        if let Some(said) = rest.strip_prefix("→ ") {
            client.say(said);
        } else if let Some(expected) = rest.strip_prefix("← ") {
            let heard = client.hear_text();
            let path = path.display();
            assert!(is_like(&heard, expected), "{path}: {line}: heard {heard}");
        } else {
            panic!("{}: neither said nor heard: {line}", path.display());
        }
    }
}

#[test]
fn conversations_of_each_version_take_place() {
    for folder in recorded("navlocks.") {
        let subprotocol = folder.file_name().expect("a name").to_str().expect("text").to_owned();
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("conversations")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "txt"));
        paths.sort();
        assert!(!paths.is_empty());
        for path in paths {
            play(&path, Running::start().tcp(), &subprotocol);
        }
    }
}

/// Writes a table as lines: the index of a slot, and its bytes.
fn text_of_table(bytes: &[u8]) -> String {
    let slots = bytes.chunks(SLOT_BYTES).enumerate();
    slots.filter(|(_, slot)| slot.iter().any(|byte| *byte != 0)).fold(
        String::new(),
        |mut text, (index, slot)| {
            let _fits = write!(text, "{index}");
            for word in slot.chunks(8) {
                text.push(' ');
                word.iter().for_each(|byte| {
                    let _fits = write!(text, "{byte:02x}");
                });
            }
            text + "\n"
        },
    )
}

/// Reads a table, and moves it to this start of the machine.
fn table_of_text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; TABLE_BYTES];
    for line in text.lines() {
        let (index, words) = line.split_once(' ').expect("an index");
        let at = index.parse::<usize>().expect("a number") * SLOT_BYTES;
        let digits: Vec<u8> = words.bytes().filter(|byte| *byte != b' ').collect();
        for (offset, pair) in digits.chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).expect("digits");
            bytes[at + offset] = u8::from_str_radix(pair, 16).expect("digits");
        }
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("its number");
    let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).expect("digits");
    bytes[BOOT].copy_from_slice(&boot.to_le_bytes());
    bytes
}

#[test]
fn state_folder_of_each_version_is_read_and_its_sessions_claim_their_locks() {
    for version in recorded("state-") {
        let folder = Folder::new();
        let state = folder.path().join("state");
        std::fs::create_dir(&state).expect("a folder");
        std::fs::copy(version.join("service.json"), state.join("service.json")).expect("a file");
        for table in TABLES {
            let text = std::fs::read_to_string(version.join(table)).expect("a table");
            std::fs::write(state.join(table), table_of_text(&text)).expect("a table");
        }
        let service = Running::again(folder, |_| {});
        play(&version.join("claims.txt"), service.tcp(), navlocks_wire::SUBPROTOCOL);
    }
}

/// Records the state folder of this version. A new version records its own before its release.
#[test]
#[ignore = "it writes tests/compat/state-…"]
fn record_the_state_folder_of_this_version() {
    let service = Running::start();
    let join = || {
        let mut client = Client::tcp_hello(service.tcp(), r#"{"lease-ms":60000}"#);
        let welcome = client.welcome();
        (client, welcome)
    };
    let (mut holder, holders) = join();
    let requests = [
        r#""id":1,"names":["a"]"#,
        r#""id":2,"names":["s"],"mode":"shared","tag":"reader""#,
        r#""id":3,"names":["l"],"mode":{"limit":3}"#,
        r#""id":4,"names":["1","2","3","4","5","6","7","8","9"]"#,
    ];
    let tokens = requests.map(|request| {
        holder.say(format!(r#"{{"request":{{{request}}}}}"#));
        holder.granted(request[5..6].parse().expect("a number"))
    });
    let (mut waiter, waiters) = join();
    let (lost, shared) = (waiter.hold(1, "x"), {
        waiter.say(r#"{"request":{"id":2,"names":["s"],"mode":"shared"}}"#);
        waiter.granted(2)
    });
    waiter.say(r#"{"request":{"id":3,"names":["a"]}}"#);
    waiter.settle();
    let (mut thief, thieves) = join();
    thief.say(r#"{"request":{"id":1,"names":["x"],"wait":"steal"}}"#);
    let stolen = thief.granted(1);
    let folder = service.kill();

    let mut claims =
        String::from("# The sessions of the folder come back, and claim what they have.\n");
    let mut line = |text: &str| claims += &format!("{text}\n");
    let hello = |client: &str, Welcome { session, secret, epoch, .. }: &Welcome| {
        let resume = format!(r#"{{"session":{session},"secret":"{secret}","epoch":{epoch}}}"#);
        [
            format!(r#"{client} → {{"hello":{{"resume":{resume}}}}}"#),
            format!(r#"{client} ← {{"welcome":{{…"session":{session},…"resumed":true,…}}}}"#),
            format!(r#"{client} → {{"open":{{"client":0}}}}"#),
        ]
        .join("\n")
    };
    line(&hello("A", &holders));
    for (request, token) in requests.iter().zip(tokens) {
        line(&format!(r#"A → {{"request":{{{request},"token":{token}}}}}"#));
    }
    line("A → \"claimed\"\nA → {\"ping\":1}\nA ← {\"pong\":1}");
    line(&hello("B", &waiters));
    line(&format!(r#"B → {{"request":{{"id":1,"names":["x"],"token":{lost}}}}}"#));
    line(&format!(
        r#"B → {{"request":{{"id":2,"names":["s"],"mode":"shared","token":{shared}}}}}"#
    ));
    line(r#"B → {"request":{"id":3,"names":["a"]}}"#);
    line("B → \"claimed\"");
    let thief = thieves.session;
    line(&format!(
        r#"B ← {{"over":{{"id":1,"why":{{"lost":{{"cause":{{"stolen":"{thief}.1"}}…}}}}}}}}"#
    ));
    line("# Another client waits for the thief, which comes back later.");
    line("D → {\"hello\":{}}\nD ← {\"welcome\":…}");
    line(r#"D → {"request":{"id":1,"names":["x"],"wait":"if-available"}}"#);
    line(&hello("C", &thieves));
    line(&format!(r#"C → {{"request":{{"id":1,"names":["x"],"token":{stolen}}}}}"#));
    line("C → \"claimed\"");
    line(r#"D ← {"over":{"id":1,"why":"unavailable"}}"#);
    line("# The waiter of the earlier service is the next holder.");
    line("A → {\"end\":1}\nB ← {\"granted\":{\"id\":3,\"token\":…}}");

    let state = folder.path().join("state");
    let json = std::fs::read_to_string(state.join("service.json")).expect("a state file");
    let version = json.split(&[':', ','][..]).nth(1).expect("a version").to_owned();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat");
    let own = own.join(format!("state-{version}"));
    std::fs::create_dir_all(&own).expect("a folder");
    std::fs::write(own.join("service.json"), json).expect("a file");
    std::fs::write(own.join("claims.txt"), claims).expect("a file");
    for table in TABLES {
        let bytes = std::fs::read(state.join(table)).expect("a table");
        std::fs::write(own.join(table), text_of_table(&bytes)).expect("a file");
    }
}
