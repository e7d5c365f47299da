//! The stories that the clients in Rust and in JavaScript both play: `tests/stories`.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use navlocks::{Acquire, Connection, Lock, Locks, QueryError, RequestErrorKind};
use navlocks_wire::{self as wire, ToClient, Welcome};
use tokio::task::JoinHandle;

use crate::client::{begun, connecting, to};
use crate::peer::{Peer, Pings, Talk, lasting};
use crate::run;

/// The user's side of one call.
enum Call {
    Request(Acquire),
    Held(Lock),
    Question(JoinHandle<Result<usize, QueryError>>),
}

/// One story while it is played.
struct Player {
    peer: Peer,
    talk: Option<Talk>,
    connecting: Option<JoinHandle<Result<Locks, navlocks::ConnectError>>>,
    locks: Option<Locks>,
    calls: HashMap<String, Call>,
}

impl Player {
    fn locks(&self) -> &Locks {
        self.locks.as_ref().expect("a connection")
    }

    /// Returns the connection; accepts the next one if there is none.
    async fn talk(&mut self) -> &mut Talk {
        if self.talk.is_none() {
            let mut talk = self.peer.accept().await;
            talk.pings = Pings::Heard;
            self.talk = Some(talk);
        }
        self.talk.as_mut().expect("a connection")
    }

    fn connect(&mut self, options: &[&str]) {
        let connect = match options {
            ["patience", limit] => {
                to(&self.peer).patience(Duration::from_millis(limit.parse().expect("a number")))
            }
            _ => to(&self.peer),
        };
        self.connecting = Some(connecting(connect));
    }

    async fn client(&mut self, message: &str) {
        let expected = wire::read(message).expect("a message");
        let talk = self.talk().await;
        assert_eq!(talk.hear().await, expected);
    }

    async fn service(&mut self, line: &str) {
        match line {
            "welcomes" | "resumes" => {
                let welcome =
                    Welcome { secret: "s".into(), resumed: line == "resumes", ..lasting(1, 1) };
                self.talk().await.says(ToClient::Welcome(welcome)).await;
                if let Some(connecting) = self.connecting.take() {
                    self.locks = Some(connecting.await.unwrap().unwrap());
                }
            }
            "breaks" => self.talk.take().expect("a connection").breaks(),
            "goes" => {
                self.peer.goes_away();
                self.talk.take().expect("a connection").breaks();
            }
            "returns" => self.peer.comes_back().await,
            error if error.starts_with(r#"{"error""#) => {
                let mut talk = self.talk.take().expect("a connection");
                talk.says_text(error).await;
                talk.ends().await;
            }
            message => {
                let talk = self.talk().await;
                talk.says_text(message).await;
                talk.settles().await;
            }
        }
    }

    fn user(&mut self, words: &[&str]) {
        let call = match *words {
            ["requests", name, "as", _] => Call::Request(begun(self.locks().request(name))),
            ["steals", name, "as", _] => Call::Request(begun(self.locks().request(name).steal())),
            ["force-releases", name, "as", _] => {
                let (locks, name) = (self.locks().clone(), name.to_owned());
                Call::Question(tokio::spawn(async move { locks.force_release(name).await }))
            }
            ["releases", label, ref late @ ..] => {
                let Some(Call::Held(lock)) = self.calls.remove(label) else { panic!("no lock") };
                assert_eq!(lock.release().is_err(), *late == ["too", "late"]);
                return;
            }
            _ => panic!("unknown words"),
        };
        self.calls.insert(words[3].to_owned(), call);
    }

    async fn expect(&mut self, words: &[&str]) {
        if let [state @ ("down" | "up")] = *words {
            let is_meant = |now: &Connection| (*now == Connection::Up) == (state == "up");
            let mut watch = self.locks().watch_connection();
            while !is_meant(&self.locks().connection()) {
                watch.changed().await;
            }
            return;
        }
        let call = self.calls.remove(words[1]).expect("a call with this label");
        let call = match (words, call) {
            (["granted", _], Call::Request(request)) => Call::Held(request.await.unwrap()),
            (["granted", _], Call::Question(question)) => {
                question.await.unwrap().unwrap();
                return;
            }
            (["holds", _], Call::Held(lock)) => {
                assert_eq!(lock.loss(), None);
                Call::Held(lock)
            }
            (["lost", _, cause], Call::Held(lock)) => {
                let loss = format!("{:?}", lock.lost().await);
                assert!(loss.starts_with(cause), "{loss}");
                Call::Held(lock)
            }
            (["fails", _, name], Call::Request(request)) => {
                let kind: RequestErrorKind = request.await.unwrap_err().into_kind();
                assert_eq!(kind.dom_exception_name(), *name);
                return;
            }
            (["fails", _, name], Call::Question(question)) => {
                assert_eq!(question.await.unwrap().unwrap_err().dom_exception_name(), *name);
                return;
            }
            _ => panic!("unknown words"),
        };
        self.calls.insert(words[1].to_owned(), call);
    }

    async fn play(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] | ["#", ..] => {}
            ["connect", ref options @ ..] => self.connect(options),
            ["client:", ..] => self.client(&line["client: ".len()..]).await,
            ["service:", ..] => self.service(&line["service: ".len()..]).await,
            ["user:", ref words @ ..] => self.user(words),
            ["expect:", ref words @ ..] => self.expect(words).await,
            _ => panic!("unknown words"),
        }
    }
}

#[test]
fn client_plays_the_stories_of_both_languages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories");
    let files = std::fs::read_dir(folder).expect("the stories");
    let paths = files.map(|file| file.expect("a file").path());
    let stories: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    assert!(!stories.is_empty());
    for path in stories {
        let text = std::fs::read_to_string(&path).expect("a story");
        run(async move {
            let peer = Peer::unix().await;
            let (talk, connecting, locks, calls) = (None, None, None, HashMap::new());
            let mut player = Player { peer, talk, connecting, locks, calls };
            for (index, line) in text.lines().enumerate() {
                // The output of a failed test ends with the line that failed.
                println!("{}:{}: {line}", path.display(), index + 1);
                player.play(line).await;
            }
        });
    }
}
