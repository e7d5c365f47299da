//! The work of one input after a start, while sessions of the earlier service have not claimed.

use std::time::{Duration, Instant};

use navlocks_server::hub::Hub;
use navlocks_server::{DeadlockPolicy, Limits};

use crate::running::Folder;
use crate::turns::{IN_ONE_GO, MANY, Session, join, numbers};

/// Longer than every lease, with its margin.
const LATER: Duration = Duration::from_secs(600);

fn hub(folder: &Folder) -> Hub {
    hub_with(folder, Limits::default())
}

fn hub_with(folder: &Folder, limits: Limits) -> Hub {
    let state = folder.path().join("state");
    Hub::with_state_folder(&state, limits, DeadlockPolicy::Ignore, Instant::now()).expect("a hub")
}

/// A hub whose predecessor was killed while these sessions held locks of their own.
fn hub_after(folder: &Folder, names: impl IntoIterator<Item = String>) -> Hub {
    let mut hub_before = hub(folder);
    for name in names {
        let holder = join(&mut hub_before);
        holder.say(&mut hub_before, &format!(r#"{{"request":{{"id":1,"names":["{name}"]}}}}"#));
    }
    drop(hub_before);
    hub(folder)
}

/// Counts the sessions of the earlier service that have not claimed.
fn unclaimed(hub: &mut Hub, asker: &Session) -> usize {
    asker.say(hub, r#"{"ask":{"id":1,"question":{"locks":"unclaimed"}}}"#);
    asker.take().pop().expect("an answer").matches(r#""session":"#).count()
}

/// Returns how many turns the hub takes for the rest of its work.
fn turns(hub: &mut Hub) -> usize {
    let mut turns = 1;
    while hub.go_on(Instant::now()) {
        turns += 1;
    }
    turns
}

#[test]
fn lock_of_an_unclaimed_session_goes_to_many_waiters_in_turns() {
    for mode in ["shared", "exclusive"] {
        let folder = Folder::new();
        let mut hub = hub_after(&folder, ["a".to_owned()]);
        let waiter = join(&mut hub);
        waiter.request_all(&mut hub, mode);
        assert_eq!(waiter.take(), [""; 0]);
        hub.check_unclaimed(Instant::now() + LATER);
        if mode == "shared" {
            let granted = waiter.take_in_turns(&mut hub);
            assert_eq!(numbers(&granted, "granted"), (1..=MANY).collect::<Vec<_>>());
            continue;
        }
        // Each waiter is looked at once.
        let most = MANY as usize / (IN_ONE_GO - 1) + 1;
        let taken = turns(&mut hub);
        assert!((most - 1..=most).contains(&taken), "{taken} turns");
        assert_eq!(numbers(&waiter.take(), "granted"), [1]);
        hub.check_invariants();
    }
}

#[test]
fn request_does_not_overtake_waiters_that_are_held_back() {
    let folder = Folder::new();
    let mut hub = hub_after(&folder, ["a".to_owned()]);
    let (waiter, late) = (join(&mut hub), join(&mut hub));
    waiter.request_all(&mut hub, "shared");
    hub.check_unclaimed(Instant::now() + LATER);
    // The first thousand waiters hold the lock, and the others are on their way.
    late.say(&mut hub, r#"{"request":{"id":1,"names":["a"]}}"#);
    let granted = waiter.take_in_turns(&mut hub);
    assert_eq!(granted.len(), MANY as usize);
    assert_eq!(late.take(), [""; 0]);
    hub.leave(waiter.number, waiter.connection, Instant::now());
    turns(&mut hub);
    assert_eq!(numbers(&late.take(), "granted"), [1]);
}

#[test]
fn unclaimed_sessions_whose_leases_pass_at_one_moment_end_in_turns() {
    let folder = Folder::new();
    let mut hub = hub_after(&folder, (0..MANY).map(|n| n.to_string()));
    let (asker, heir) = (join(&mut hub), join(&mut hub));
    for id in 1..=MANY {
        let name = id - 1;
        heir.say(&mut hub, &format!(r#"{{"request":{{"id":{id},"names":["{name}"]}}}}"#));
    }
    let mut before = unclaimed(&mut hub, &asker);
    assert_eq!(before, MANY as usize);
    let mut granted = Vec::new();
    while before > 0 {
        let next = hub.check_unclaimed(Instant::now() + LATER);
        let left = unclaimed(&mut hub, &asker);
        assert_eq!(next, (left > 0).then_some(Duration::ZERO));
        assert!(before - left < IN_ONE_GO, "{} sessions in one go", before - left);
        granted.extend(heir.take_in_turns(&mut hub));
        before = left;
    }
    assert_eq!(granted.len(), MANY as usize);
}

#[test]
fn request_for_which_a_claim_has_no_room_is_refused_alone() {
    let folder = Folder::new();
    let mut hub_before = hub(&folder);
    let holder = join(&mut hub_before);
    drop(hub_before);
    let limits = Limits::default().with(|it| it.bytes_per_tenant_max = 100_000);
    let mut hub = hub_with(&folder, limits);
    let holder = holder.begin_resume(&mut hub);
    let name = "x".repeat(1000);
    for id in 1..=100 {
        let request = format!(r#""id":{id},"names":["{name}"],"mode":"shared""#);
        // The service knows of no such locks.
        let token = if id > 90 { r#","token":1"# } else { "" };
        holder.say(&mut hub, &format!(r#"{{"request":{{{request}{token}}}}}"#));
    }
    let answers = holder.take();
    let lost = answers.iter().filter(|text| text.contains(r#""why":{"lost":"#)).count();
    assert_eq!(lost, 10);
    let refused = answers.iter().filter(|text| text.contains(r#""why":{"refused":"#)).count();
    assert!((1..50).contains(&refused), "{refused} requests of a thousand bytes are refused");
    holder.say(&mut hub, r#""claimed""#);
    hub.check_invariants();
}

/// Requests locks of one to forty names in five sessions; all but those of the first one wait.
fn hold_many(hub: &mut Hub) {
    for _ in 0..5 {
        let session = join(hub);
        for (id, count) in [1, 2, 3, 8, 9, 40].into_iter().enumerate() {
            let names: Vec<String> = (0..count).map(|name| format!(r#""{id}-{name}""#)).collect();
            let names = names.join(",");
            session.say(hub, &format!(r#"{{"request":{{"id":{},"names":[{names}]}}}}"#, id + 1));
        }
    }
}

/// No bytes of the tables make a service fail: it refuses claims at most.
#[test]
fn tables_with_any_words_are_read_or_emptied() {
    const WORD_BYTES: usize = 8;
    const WORDS: usize = 8;
    const NUMBERS: usize = 9;
    let folder = Folder::new();
    let mut first = hub(&folder);
    hold_many(&mut first);
    drop(first);
    let files = ["sessions.table", "requests.table", "service.json"]
        .map(|name| folder.path().join("state").join(name))
        .map(|path| (std::fs::read(&path).expect("a file"), path));
    let mut state = 1_u64;
    // Numbers as of xorshift64, https://www.jstatsoft.org/article/view/v008i14.
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut kept, rounds) = (0, 2 * WORDS * NUMBERS);
    for round in 0..rounds {
        for (bytes, path) in &files {
            std::fs::write(path, bytes).expect("a copy");
        }
        // Each word of each table gets each kind of number in turn, in some slot.
        let (mut bytes, path) = files[round % 2].clone();
        let number: u64 = match round / (2 * WORDS) {
            0 => 0,
            1 => 1,
            2 => random(64) as u64,
            3 => 4095,
            4 => 4096,
            5 => 1 << 53,
            6 => u64::MAX,
            7 => 1 << random(64),
            _ => random(usize::MAX) as u64,
        };
        let slots = if round % 2 == 0 { 6 } else { 64 };
        let at = (random(slots) * WORDS + round / 2 % WORDS) * WORD_BYTES;
        bytes[at..at + WORD_BYTES].copy_from_slice(&number.to_le_bytes());
        bytes.truncate(if random(8) == 0 { random(bytes.len()) } else { bytes.len() });
        std::fs::write(path, bytes).expect("other words");
        println!("round {round}");
        let mut hub = hub(&folder);
        let asker = join(&mut hub);
        kept += usize::from(unclaimed(&mut hub, &asker) > 0);
        hub.check_unclaimed(Instant::now() + Duration::from_millis(1 << 60));
        turns(&mut hub);
        hold_many(&mut hub);
        hub.check_invariants();
    }
    assert!(kept > rounds / 10 && kept < rounds, "{kept} of {rounds} were read");
}

/// Returns the token of the only grant among these messages.
fn token(messages: &[String]) -> String {
    let granted = messages.iter().find(|text| text.starts_with(r#"{"granted":"#)).expect("a grant");
    let (_, token) = granted.split_once(r#""token":"#).expect("a token");
    token.trim_end_matches('}').into()
}

#[test]
fn holder_beside_a_limit_is_counted_until_it_has_claimed() {
    let folder = Folder::new();
    let mut hub_before = hub(&folder);
    let (limited, shared) = (join(&mut hub_before), join(&mut hub_before));
    let requests = [
        r#"{"request":{"id":1,"names":["a"],"mode":{"limit":2}"#,
        r#"{"request":{"id":1,"names":["a"],"mode":"shared""#,
    ];
    limited.say(&mut hub_before, &format!("{}}}}}", requests[0]));
    shared.say(&mut hub_before, &format!("{}}}}}", requests[1]));
    let tokens = [token(&limited.take()), token(&shared.take())];
    drop(hub_before);
    let mut hub = hub(&folder);
    let claim = |session: Session, which: usize, hub: &mut Hub| {
        let session = session.begin_resume(hub);
        session.say(hub, r#"{"open":{"client":0}}"#);
        session.take();
        session.say(hub, &format!(r#"{},"token":{}}}}}"#, requests[which], tokens[which]));
        session.say(hub, r#""claimed""#);
        session
    };
    let limited = claim(limited, 0, &mut hub);
    // A third holder would be one more than the first one allows.
    let late = join(&mut hub);
    late.say(&mut hub, &format!("{}}}}}", requests[1]));
    assert_eq!(late.take(), [""; 0]);
    let shared = claim(shared, 1, &mut hub);
    assert_eq!([limited.take(), shared.take(), late.take()], [const { Vec::<String>::new() }; 3]);
    hub.leave(limited.number, limited.connection, Instant::now());
    turns(&mut hub);
    assert_eq!(numbers(&late.take(), "granted"), [1]);
    hub.check_invariants();
}
