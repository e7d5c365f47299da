//! Arbitrary bytes as frames in both directions, and conversations of clients with a service
//! without sockets.
//!
//! The first byte selects one. Texts: each line is read as a message of either side, and sent over
//! a connection after its hello. Conversation: three bytes an operation, so that every input is
//! valid and the fuzzer explores behaviour.

#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
mod rehearsal;

use std::collections::HashMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use navlocks_server::{DeadlockPolicy, Limits};
use navlocks_wire::{self as wire, Granted, ToClient, ToService, Welcome};
use rehearsal::Rehearsal;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let policies = [DeadlockPolicy::Ignore, DeadlockPolicy::Report, DeadlockPolicy::Refuse];
    let mut stage = Stage::new(policies[usize::from(kind >> 1) % policies.len()]);
    if kind & 1 == 0 {
        stage.texts(rest);
    } else {
        rest.chunks_exact(3).take(200).for_each(|op| stage.play(op[0], op[1], op[2]));
    }
});

/// Few connections, so that their requests conflict.
const CONNECTIONS: usize = 4;

struct Stage {
    service: Rehearsal,
    actors: Vec<Actor>,
    /// The token of each grant, which never changes.
    tokens: HashMap<(u32, u64), u64>,
}

struct Actor {
    connection: usize,
    welcome: Option<Welcome>,
    next: u64,
}

impl Stage {
    fn new(deadlocks: DeadlockPolicy) -> Self {
        let limits = Limits::default().with(|limits| {
            limits.requests_per_session_max = 20;
            limits.requests_per_partition_max = 40;
            limits.clients_per_session_max = 3;
            limits.partitions_max = 3;
            limits.name_bytes_max = 64;
            limits.names_per_request_max = 4;
            limits.tag_bytes_max = 16;
            limits.partition_bytes_max = 500;
            limits.outbox_bytes_max = 20_000;
        });
        let service = Rehearsal::new(limits, deadlocks).expect("the clock is right");
        let mut stage = Self { service, actors: Vec::new(), tokens: HashMap::new() };
        for number in 0..CONNECTIONS {
            let connection = stage.service.connect(number % 2 == 0);
            stage.actors.push(Actor { connection, welcome: None, next: 1 });
            stage.say(number, r#"{"hello":{}}"#);
            stage.listen_to(number);
        }
        stage
    }

    fn texts(&mut self, bytes: &[u8]) {
        for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let Ok(text) = str::from_utf8(line) else { continue };
            same_after_writing::<ToService>(text);
            same_after_writing::<ToClient>(text);
            self.say(number % CONNECTIONS, text);
            (0..CONNECTIONS).for_each(|actor| self.listen_to(actor));
        }
    }

    fn play(&mut self, what: u8, who: u8, how: u8) {
        let who = usize::from(who) % CONNECTIONS;
        let actor = &self.actors[who];
        let (next, near) = (actor.next, actor.next.saturating_sub(u64::from(how >> 5)));
        let client = how & 3;
        match what % 16 {
            0..=4 => {
                let names = ["[\"a\"]", "[\"b\"]", "[\"a\",\"b\"]", "[\"\\ud800\"]"];
                let waits = ["queue", "queue", "if-available", "steal", "steal-all", "overtake"];
                let (names, wait) = (names[usize::from(how) % 4], waits[usize::from(how >> 2) % 6]);
                let mode = if how & 128 == 0 { "exclusive" } else { "shared" };
                let client = u8::from(what == 4);
                self.actors[who].next += 1;
                self.say(who, &format!(
                    r#"{{"request":{{"id":{next},"client":{client},"names":{names},"mode":"{mode}","wait":"{wait}","tag":"t"}}}}"#
                ));
            }
            5 | 6 => self.say(who, &format!(r#"{{"end":{near}}}"#)),
            7 => self.say(who, &format!(r#"{{"end":{near}}}"#)),
            8 => self.say(who, &format!(r#"{{"watch":{{"contention":{near}}}}}"#)),
            9 => {
                let questions = [
                    r#"{"locks":"partition"}"#,
                    r#"{"waits":"deadlocks"}"#,
                    r#"{"force-release":"a"}"#,
                    r#"{"blockers":"1.2"}"#,
                    r#"{"contended":"2.1"}"#,
                ];
                let question = questions[usize::from(how) % questions.len()];
                self.say(who, &format!(r#"{{"ask":{{"id":1,"question":{question}}}}}"#));
            }
            10 => {
                let partition = if how & 4 == 0 { "" } else { "p" };
                self.say(
                    who,
                    &format!(r#"{{"open":{{"client":{client},"partition":"{partition}"}}}}"#),
                );
            }
            11 => self.say(who, &format!(r#"{{"close":{client}}}"#)),
            12 => {
                let watch = if how & 4 == 0 { "events" } else { "no-events" };
                self.say(who, &format!(r#"{{"watch":{{"{watch}":0}}}}"#));
            }
            13 => self.service.pass(Duration::from_millis(u64::from(how) * 100)),
            14 => self.come_back(who, near, how),
            _ if how & 7 == 0 => self.say(who, r#""bye""#),
            _ => self.say(who, &format!(r#"{{"ping":{how}}}"#)),
        }
        (0..CONNECTIONS).for_each(|actor| self.listen_to(actor));
    }

    /// Breaks the connection or not, and connects again with the same session or a new one.
    fn come_back(&mut self, who: usize, near: u64, how: u8) {
        let actor = &mut self.actors[who];
        if how & 1 == 0 {
            self.service.cut(actor.connection);
        }
        actor.connection = self.service.connect(how & 2 == 0);
        match actor.welcome.take().filter(|_| how & 4 == 0) {
            Some(Welcome { session, secret, .. }) => {
                let hello = format!(
                    r#"{{"hello":{{"resume":{{"session":{session},"secret":"{secret}"}}}}}}"#
                );
                self.say(who, &hello);
                self.say(who, r#"{"open":{"client":0}}"#);
                self.say(who, &format!(r#"{{"request":{{"id":{near},"names":["a"]}}}}"#));
                if how & 8 == 0 {
                    self.say(who, r#""claimed""#);
                }
            }
            None => {
                actor.next = 1;
                self.say(who, r#"{"hello":{}}"#);
            }
        }
    }

    fn say(&mut self, who: usize, text: &str) {
        self.service.say(self.actors[who].connection, text);
        self.service.check();
    }

    /// Receives all messages, each of which must be valid.
    fn listen_to(&mut self, who: usize) {
        let actor = &mut self.actors[who];
        for text in self.service.hear(actor.connection) {
            let message: ToClient = wire::read(&text).expect("what a service says is a message");
            assert_eq!(wire::write(&message), text);
            match message {
                ToClient::Welcome(welcome) => {
                    // A resumed session may name a request that it had ended, which is a new one.
                    self.tokens.retain(|&(session, _), _| session != welcome.session);
                    actor.welcome = Some(welcome);
                }
                ToClient::Granted(Granted { id, token, .. }) => {
                    let session = actor.welcome.as_ref().expect("a welcome comes first").session;
                    let known = *self.tokens.entry((session, id)).or_insert(token);
                    assert_eq!(known, token, "a lock has one token");
                }
                _ => {}
            }
        }
    }
}

/// Checks that a message is the same after it was written and read.
fn same_after_writing<M>(text: &str)
where
    M: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    if let Ok(message) = wire::read::<M>(text) {
        let written = wire::write(&message);
        assert_eq!(wire::read::<M>(&written).as_ref(), Ok(&message), "{written}");
    }
}
