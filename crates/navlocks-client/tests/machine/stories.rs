//! The stories that the clients in Rust and in JavaScript both play: `tests/stories`. Time goes on
//! where a story waits for the client.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use navlocks_client::{Begin, LinkState, LossCause, Outcome, Over, QueryFailure};
use navlocks_core::{Mode, Wait};
use navlocks_wire::{self as wire, Question, Request};

use crate::peer::{LIMITS, Peer, local, request};

/// A call of the user, by its number.
#[derive(Clone, Copy)]
enum Call {
    Request(u64),
    Question(u64),
    /// A downgrade of the lock of this request.
    Downgrade(u64),
    /// It failed at once, with this name of a DOMException.
    Failed(&'static str),
}

/// One story while it is played.
struct Player {
    peer: Peer,
    calls: HashMap<String, Call>,
}

impl Player {
    fn connect(options: &[&str]) -> Self {
        let mut settings = local(Begin::Once);
        if let ["unreachable-after", limit] = options {
            let limit = Duration::from_millis(limit.parse().unwrap());
            settings.unreachable_after = Some(limit);
            settings.answer_timeout = Some(limit.max(Duration::from_secs(1)));
        }
        Self { peer: Peer::new(settings), calls: HashMap::new() }
    }

    fn client(&mut self, line: &str) {
        match line {
            "drops" => assert!(std::mem::take(&mut self.peer.dropped)),
            message => assert_eq!(self.peer.hear(), wire::read(message).unwrap()),
        }
    }

    fn service(&mut self, line: &str) {
        let peer = &mut self.peer;
        match line {
            "welcomes" => peer.welcome(r#""secret":"s","#, LIMITS),
            "resumes" => peer.welcome(r#""secret":"s","resumed":true,"#, LIMITS),
            "breaks" | "goes" | "closes" => {
                peer.listens = line != "goes";
                // Messages that the service has not read are lost.
                peer.sent.clear();
                peer.breaks();
            }
            "returns" => peer.listens = true,
            message => peer.receive(message),
        }
    }

    fn user(&mut self, words: &[&str]) {
        let mut requests = |name, wait| match self.peer.requests(request(name, wait)) {
            Ok(number) => Call::Request(number),
            Err(over) => Call::Failed(name_of(&over).unwrap()),
        };
        let (label, call) = match *words {
            ["requests", name, "as", label] => (label, requests(name, Wait::Queue)),
            ["requests", name, "as", label, "for", ms] => {
                let max_hold_ms = Some(ms.parse().unwrap());
                let request = Request { max_hold_ms, ..request(name, Wait::Queue) };
                (label, Call::Request(self.peer.requests(request).unwrap()))
            }
            // The timer of a timeout is the driver's.
            ["requests", name, "as", label, "within", _] => {
                let number = self.peer.requests(request(name, Wait::Queue)).unwrap();
                assert!(self.peer.machine.time_out(number).is_some());
                (label, Call::Failed("TimeoutError"))
            }
            ["downgrades", lock, "as", label] => {
                let number = self.number(lock);
                assert!(self.peer.machine.downgrade(number, Mode::Shared));
                (label, Call::Downgrade(number))
            }
            ["steals", name, "as", label] => (label, requests(name, Wait::Steal)),
            ["force-releases", name, "as", label] => {
                let (question, now) = (Question::ForceRelease(name.into()), self.peer.now);
                let call = match self.peer.machine.ask(0, question, now) {
                    Ok(number) => Call::Question(number),
                    Err(failure) => Call::Failed(name_of_failure(&failure)),
                };
                (label, call)
            }
            ["leaves"] => {
                self.peer.machine.leave(self.peer.now);
                return self.peer.carry_out_commands();
            }
            ["releases", label, ref late @ ..] => {
                let (loss, ()) = self.peer.machine.release(self.number(label)).unwrap();
                assert_eq!(loss.is_some(), *late == ["too", "late"]);
                return;
            }
            _ => panic!("unknown words"),
        };
        self.calls.insert(label.to_owned(), call);
        self.peer.carry_out_commands();
    }

    fn number(&self, label: &str) -> u64 {
        match self.calls[label] {
            Call::Request(number) => number,
            _ => panic!("{label} is no request"),
        }
    }

    fn expect(&mut self, words: &[&str]) {
        let peer = &mut self.peer;
        match *words {
            [state @ ("down" | "up")] => peer.wait_until(|peer| {
                let is_up = *peer.machine.link() == LinkState::Up;
                (is_up == (state == "up")).then_some(())
            }),
            ["granted", label] => match self.calls[label] {
                Call::Request(number) => {
                    assert!(matches!(peer.machine.outcome(number), Some(Outcome::Granted(_))));
                }
                Call::Question(number) => {
                    assert!(matches!(peer.machine.answer(number), Some(Ok(_))));
                }
                _ => panic!("{label} is not granted"),
            },
            ["waits", label] => {
                let number = self.number(label);
                assert!(matches!(self.peer.machine.outcome(number), Some(Outcome::Pending(()))));
            }
            ["downgraded", label] => {
                let Call::Downgrade(number) = self.calls[label] else { panic!("{label}") };
                assert!(peer.machine.is_downgraded(number));
                assert_eq!(peer.machine.loss(number), None);
            }
            ["holds", label] => {
                let number = self.number(label);
                assert_eq!(self.peer.machine.loss(number), None);
            }
            ["lost", label, cause] => {
                let number = self.number(label);
                let loss = self.peer.wait_until(|peer| peer.machine.loss(number).cloned());
                let loss = match loss {
                    LossCause::Taken { cause, .. } => format!("{cause:?}"),
                    other => format!("{other:?}"),
                };
                assert!(loss.starts_with(cause), "{loss}");
            }
            ["fails", label, name] => {
                let call = self.calls[label];
                assert_eq!(peer.wait_until(|peer| failure(peer, call)), name);
            }
            ["fails", label, name, code] => {
                let Call::Question(number) = self.calls[label] else { panic!("{label}") };
                let failure = peer.wait_until(|peer| peer.machine.answer(number)).unwrap_err();
                assert_eq!((name_of_failure(&failure), code_of(&failure)), (name, code));
            }
            _ => panic!("unknown words"),
        }
        self.peer.carry_out_commands();
    }
}

/// Returns the name of the DOMException with which a call failed, if it did.
fn failure(peer: &mut Peer, call: Call) -> Option<&'static str> {
    match call {
        Call::Request(number) => match peer.machine.outcome(number)? {
            Outcome::Over(over) => name_of(&over),
            Outcome::Pending(()) | Outcome::Granted(_) => None,
        },
        Call::Question(number) => match peer.machine.answer(number)? {
            Err(failure) => Some(name_of_failure(&failure)),
            Ok(reply) => panic!("{reply:?}"),
        },
        Call::Downgrade(number) => peer.machine.loss(number).map(|_| "AbortError"),
        Call::Failed(name) => Some(name),
    }
}

fn name_of(over: &Over) -> Option<&'static str> {
    match over {
        Over::Refused(refused) => Some(refused.fault.code.dom_exception_name()),
        Over::Unreachable | Over::OutcomeUnknown => Some("NetworkError"),
        Over::Lost(_) => Some("AbortError"),
        Over::Unavailable => None,
    }
}

fn code_of(failure: &QueryFailure) -> &'static str {
    match failure {
        QueryFailure::Unreachable => "unreachable",
        QueryFailure::OutcomeUnknown => "unknown-outcome",
        other => panic!("{other:?}"),
    }
}

fn name_of_failure(failure: &QueryFailure) -> &'static str {
    match failure {
        QueryFailure::Unreachable | QueryFailure::OutcomeUnknown => "NetworkError",
        QueryFailure::Refused(fault) => fault.code.dom_exception_name(),
        other => panic!("{other:?}"),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the output of a failed test ends with the line that failed"
)]
fn play(text: &str, path: &Path) {
    let mut playing = None;
    for (index, line) in text.lines().enumerate() {
        println!("{}:{}: {line}", path.display(), index + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&words[..], &mut playing) {
            ([] | ["#", ..], _) => {}
            (["connect", options @ ..], _) => playing = Some(Player::connect(options)),
            (["client:", ..], Some(player)) => {
                player.client(&line["client: ".len()..]);
            }
            (["service:", ..], Some(player)) => player.service(&line["service: ".len()..]),
            (["user:", words @ ..], Some(player)) => player.user(words),
            (["expect:", words @ ..], Some(player)) => player.expect(words),
            _ => panic!("unknown words"),
        }
    }
}

#[test]
fn machine_plays_the_stories_of_both_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories");
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    assert!(!paths.is_empty());
    for path in paths {
        play(&std::fs::read_to_string(&path).unwrap(), &path);
    }
}
