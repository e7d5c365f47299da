//! The machine of a client, against a service and a network that do anything at any moment.
//!
//! Three bytes an operation: verbs of the user, messages of the service, ends of connections, and
//! time. With an even first byte each line of the rest is a message of the service instead.

#![no_main]

use std::collections::HashSet;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use navlocks_client::{
    Addresses, Begin, Command, DialFailure, Event, LinkState, Machine, Moment, Outcome, Settings,
};
use navlocks_core::Mode;
use navlocks_wire::{self as wire, Request, ToClient, ToService};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let mut stage = Stage::new(kind >> 1);
    if kind & 1 == 0 {
        stage.connect(kind);
        for line in rest.split(|&byte| byte == b'\n') {
            stage.receive(str::from_utf8(line).unwrap_or_default());
        }
    } else {
        rest.chunks_exact(3).take(200).for_each(|op| stage.play(op[0], op[1], op[2]));
    }
    stage.leave();
});

const ADDRESSES: [&str; 3] = ["unix:/s", "ws://127.0.0.1:7400", "ws://127.0.0.1:1,127.0.0.1:2"];
const BEGINS: [Begin; 3] = [Begin::Persist, Begin::Once, Begin::Dial];
const NAMES: [&str; 4] = [r#"["a"]"#, r#"["b"]"#, r#"["a","b"]"#, r#"["\ud800"]"#];
const WAITS: [&str; 5] = ["queue", "if-available", "steal", "steal-all", "overtake"];
const MODES: [&str; 3] = [r#""exclusive""#, r#""shared""#, r#"{"limit":3}"#];

/// The driver of a machine. It checks what each client promises to each service.
struct Stage {
    machine: Machine<()>,
    now: Moment,
    /// Commands of a connection may come, and which numbers were sent over it.
    connection: Option<Connection>,
    /// Requests whose grants the user has received.
    held: HashSet<u64>,
    over: HashSet<u64>,
    /// The numbers of the last requests, clients and questions.
    last: (u64, u64, u64),
}

#[derive(Default)]
struct Connection {
    has_hello: bool,
    is_closing: bool,
    request: u64,
    client: u64,
}

impl Stage {
    fn new(kind: u8) -> Self {
        let kind = usize::from(kind);
        let addresses = Addresses::parse(ADDRESSES[kind % 3]).expect("addresses");
        let mut settings = Settings::new(addresses, BEGINS[kind / 3 % 3]);
        settings.unreachable_after = [None, Some(Duration::from_secs(3))][kind / 9 % 2];
        settings.answer_timeout = [None, Some(Duration::from_secs(5))][kind / 18 % 2];
        settings.starts_service = kind & 64 != 0;
        let now = Moment::from_nanoseconds(1_000_000_000);
        let machine = Machine::new(settings, kind as u64, now);
        let (held, over) = (HashSet::new(), HashSet::new());
        let mut stage = Self { machine, now, connection: None, held, over, last: (0, 0, 0) };
        stage.look();
        stage
    }

    /// Carries out commands and reads events.
    fn look(&mut self) {
        for commands in 0.. {
            assert!(commands < 10_000, "no end of commands");
            let Some(command) = self.machine.poll_command() else { break };
            match command {
                Command::Open => self.connection = Some(Connection::default()),
                Command::Send(text) => self.sent(&text),
                Command::Close => self.connection().is_closing = true,
                Command::Drain => self.connection().is_closing = true,
                Command::Dial(_) | Command::Drop => self.connection = None,
                Command::Present(_) | Command::StartService => {}
            }
        }
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Granted(number) => {
                    assert!(!self.held.contains(&number), "{number} is granted twice");
                    assert!(!self.over.contains(&number), "{number} is granted after its end");
                }
                Event::Over(number) => assert!(self.over.insert(number), "{number} ends twice"),
                _ => {}
            }
        }
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a connection")
    }

    /// Checks a message as a service does.
    fn sent(&mut self, text: &str) {
        let message: ToService = wire::read(text).expect("a message");
        assert_eq!(wire::write(&message), text);
        let connection = self.connection();
        assert!(!connection.is_closing, "{text} is sent behind the end");
        let is_hello = matches!(message, ToService::Hello(_));
        assert_ne!(is_hello, connection.has_hello, "{text}");
        connection.has_hello = true;
        match message {
            ToService::Request(request) => {
                assert!(request.id > connection.request, "{text} is not the next one");
                connection.request = request.id;
            }
            ToService::Open(open) => {
                assert!(open.client >= connection.client, "{text} is not the next one");
                connection.client = open.client + 1;
            }
            _ => {}
        }
    }

    fn receive(&mut self, text: &str) {
        if let Ok(message) = wire::read::<ToClient>(text) {
            self.machine.received(message, self.now);
            self.look();
        }
    }

    /// Makes a connection, as far as the machine wants one.
    fn connect(&mut self, how: u8) {
        self.machine.dialed(how & 1 == 0, Some("8hV1vPbQ2mT0n3Zc5yYt4A".into()), self.now);
        self.machine.greet(self.now);
        self.look();
        self.machine.opened(self.now);
        self.look();
        self.welcome(how);
    }

    fn welcome(&mut self, how: u8) {
        let (max, epoch) = (if how & 1 == 0 { 1000 } else { 2 }, 1 + (how >> 1 & 1));
        let mut more = String::new();
        for (bit, member) in [
            (4, r#""secret":"8hV1vPbQ2mT0n3Zc5yYt4A","#),
            (8, r#""lease-ms":4000,"#),
            (16, r#""resumed":true,"#),
            (32, r#""cluster":true,"#),
            (64, r#""presence":"/p","#),
        ] {
            if how & bit != 0 {
                more.push_str(member);
            }
        }
        self.receive(&format!(
            r#"{{"welcome":{{"service":"n","session":1,"epoch":{epoch},{more}"limits":{{"message-bytes-max":100000,"name-bytes-max":{max},"names-per-request-max":{max},"tag-bytes-max":{max},"requests-per-session-max":{max},"clients-per-session-max":{max}}}}}}}"#
        ));
    }

    fn play(&mut self, what: u8, which: u8, how: u8) {
        let (requests, clients, questions) = self.last;
        let near = |last: u64| last.saturating_sub(u64::from(which));
        let (number, client) = (near(requests % 1000), u64::from(which) % (clients + 1));
        let now = self.now;
        match what % 16 {
            0..=3 => self.request(client, how),
            4 => drop(self.machine.release(number)),
            5 => drop(self.machine.abort(number)),
            6 => {
                if let Some(Outcome::Granted(_)) = self.machine.outcome(number) {
                    self.held.insert(number);
                }
            }
            7 => drop(self.machine.downgrade(number, Mode::Shared)),
            8 if how & 1 == 0 => self.machine.watch(number),
            8 => self.machine.unwatch(number),
            9 => {
                let question = r#"{"ask":{"id":1,"question":{"force-release":"a"}}}"#;
                let Ok(ToService::Ask(ask)) = wire::read(question) else { return };
                if let Ok(asked) = self.machine.ask(client, ask.question, now) {
                    self.last.2 = asked;
                }
            }
            10 => match how % 5 {
                0 | 1 => self.last.1 = self.machine.add_client(["", "p"][usize::from(how & 1)]),
                2 => self.machine.end_client(client),
                3 => self.machine.listen(client),
                _ => self.machine.unlisten(client),
            },
            11 => match how % 4 {
                0 => drop(self.machine.answer(near(questions))),
                1 => self.machine.forget_query(near(questions)),
                2 => self.machine.forget_client(client),
                _ => self.machine.present(),
            },
            12 => self.link(which, how),
            13 => match how {
                0..=199 => self.advance(1),
                _ => self.pass(Duration::from_millis(u64::from(which) * 50)),
            },
            14 => self.connect(how),
            _ => self.message(number, how),
        }
        self.look();
    }

    fn request(&mut self, client: u64, how: u8) {
        let how = usize::from(how);
        let (names, wait, mode) = (NAMES[how % 4], WAITS[how / 4 % 5], MODES[how / 20 % 3]);
        let hold = if how >= 180 { r#","max-hold-ms":700"# } else { "" };
        let text = format!(
            r#"{{"request":{{"id":1,"client":{client},"names":{names},"mode":{mode},"wait":"{wait}"{hold}}}}}"#
        );
        let Ok(ToService::Request(request)) = wire::read(&text) else { return };
        if let Ok(number) = self.machine.request(Request { id: 0, ..request }, (), self.now) {
            self.last.0 = number;
        }
    }

    /// Plays an event of the network or of the service process.
    fn link(&mut self, which: u8, how: u8) {
        let now = self.now;
        match how % 8 {
            0 => self.machine.dialed(which & 1 == 0, None, now),
            1 => self.machine.greet(now),
            2 => self.machine.opened(now),
            3 => self.machine.dial_failed(DialFailure::Absent, now),
            4 => self.machine.dial_failed(DialFailure::Unreachable, now),
            5 => self.machine.service_started(which & 1 == 0, now),
            6 => {
                self.connection = None;
                self.machine.broken(now);
            }
            _ => {
                self.connection = None;
                self.machine.closed(now);
            }
        }
    }

    /// A message of the service about this request.
    fn message(&mut self, id: u64, how: u8) {
        let codes = ["moved", "shutting-down", "lease-lapsed", "limit", "unknown-session"];
        let text = match how % 16 {
            0..=5 => format!(r#"{{"granted":{{"id":{id},"token":{}}}}}"#, 100 + id),
            6 => format!(r#"{{"pending":{{"id":{id},"place":[1,{how}]}}}}"#),
            7 => format!(r#"{{"over":{{"id":{id},"why":"unavailable"}}}}"#),
            8 => format!(r#"{{"over":{{"id":{id},"why":{{"lost":{{"stolen":"1.{how}"}}}}}}}}"#),
            9 => format!(
                r#"{{"over":{{"id":{id},"why":{{"refused":{{"code":"limit","message":"m"}}}}}}}}"#
            ),
            10 => format!(r#"{{"downgraded":{{"id":{id},"mode":"shared"}}}}"#),
            11 => format!(r#"{{"answer":{{"id":{id},"reply":{{"released":1}}}}}}"#),
            12 => format!(r#"{{"event":{{"contended":{id}}}}}"#),
            13 => format!(r#"{{"pong":{id}}}"#),
            14 => r#"{"event":{"watching":0}}"#.to_owned(),
            _ => {
                let code = codes[usize::from(how >> 4) % codes.len()];
                format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#)
            }
        };
        self.receive(&text);
    }

    /// Goes on to the next moment that matters to the machine, this often.
    fn advance(&mut self, times: usize) {
        for _ in 0..times {
            let deadline = self.machine.deadline();
            if deadline == Moment::NEVER {
                return;
            }
            self.now = self.now.max(deadline);
            self.elapse();
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
        self.elapse();
    }

    fn elapse(&mut self) {
        self.machine.elapsed(self.now);
        // Otherwise its driver would run in a circle.
        for _ in 0..100 {
            self.look();
            if self.machine.deadline() > self.now {
                return;
            }
            self.machine.elapsed(self.now);
        }
        panic!("the machine is due for ever: {:?}", self.machine);
    }

    /// The user leaves: all requests are over, and the machine ends in time.
    fn leave(mut self) {
        self.machine.leave(self.now);
        self.look();
        for number in 1..=self.last.0 {
            let outcome = self.machine.outcome(number);
            assert!(matches!(outcome, None | Some(Outcome::Over(_))), "{number}: {outcome:?}");
        }
        self.advance(20);
        self.machine.shut_down();
        self.look();
        assert!(self.machine.has_ended());
        assert!(matches!(
            self.machine.link(),
            LinkState::Leaving | LinkState::Gone | LinkState::Refused(_)
        ));
        assert_eq!(self.machine.deadline(), Moment::NEVER);
    }
}
