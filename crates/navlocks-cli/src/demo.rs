//! The scheduling example of the Web Locks explainer, six requests and four releases, driven through the engine.

use std::error::Error;
use std::fmt::{self, Write};

use navlocks_core::{
    Event, HashKey, LockInfo, LockManager, Mode, Request, RequestId, Scope, Snapshot,
};

/// One line of the example. Requests are numbered #1, #2, … in the order they are made.
enum Step {
    Request(Mode, &'static [&'static str]),
    Release(usize),
}

const STEPS: [Step; 10] = [
    Step::Request(Mode::Exclusive, &["a"]),
    Step::Request(Mode::Shared, &["b"]),
    Step::Request(Mode::Shared, &["b"]),
    Step::Request(Mode::Exclusive, &["a", "b"]),
    Step::Request(Mode::Shared, &["b"]),
    Step::Request(Mode::Exclusive, &["c"]),
    Step::Release(1),
    Step::Release(2),
    Step::Release(3),
    Step::Release(4),
];

const OPENING: &str = "\
The scheduling example of the Web Locks explainer, run on navlocks-core.
Six clients ask for one lock each, then four of them release theirs.
X is exclusive, S is shared; {a, b} is one lock on two names.
";

const CLOSING: &str = "\
What this shows: a lock is held exactly when nothing earlier conflicts, so #6 never waited and #5 never overtook #4.
";

/// Runs the example on a fresh manager and tells it step by step.
pub(crate) fn transcript() -> Result<String, Box<dyn Error>> {
    let mut stage = Stage::new();
    let mut text = String::from(OPENING);
    for (index, step) in STEPS.iter().enumerate() {
        let input = stage.perform(step)?;
        writeln!(text, "\n{:>2}. {input}", index + 1)?;
        stage.tell(&mut text)?;
    }
    write!(text, "\n{CLOSING}")?;
    Ok(text)
}

/// The manager and who is who in it.
struct Stage {
    manager: LockManager,
    /// The engine's ids in the order of the example: #1 stands first.
    requests: Vec<RequestId>,
}

impl Stage {
    fn new() -> Self {
        // A fixed key is fine here: all names are our own.
        Self { manager: LockManager::new(HashKey::from_bytes([0; 16])), requests: Vec::new() }
    }

    /// Feeds one input to the engine and says it in words.
    fn perform(&mut self, step: &Step) -> Result<String, Box<dyn Error>> {
        match *step {
            Step::Request(mode, names) => {
                let scope = Scope::new(names.iter().copied())?;
                let client = self.manager.add_client();
                let input = format!("request #{} {}", self.requests.len() + 1, Wish(mode, &scope));
                let request = match mode {
                    Mode::Exclusive => Request::exclusive(scope),
                    Mode::Shared => Request::shared(scope),
                };
                self.requests.push(self.manager.request(client, request)?);
                Ok(input)
            }
            Step::Release(number) => {
                let held = self
                    .requests
                    .get(number - 1)
                    .is_some_and(|&request| self.manager.release(request));
                if held {
                    Ok(format!("release #{number}"))
                } else {
                    Err(format!("#{number} holds nothing to release").into())
                }
            }
        }
    }

    /// Writes the events of the last input, then the state it left.
    fn tell(&mut self, text: &mut String) -> fmt::Result {
        let mut events = Vec::new();
        while let Some(event) = self.manager.poll_event() {
            events.push(self.event(&event));
        }
        let Snapshot { held, pending } = self.manager.snapshot();
        let held: Vec<String> = held.iter().map(|lock| self.entry(lock)).collect();
        let pending: Vec<String> = pending
            .iter()
            .map(|wait| format!("{:<11} {}", self.entry(wait), self.reason(wait.request)))
            .collect();
        section(text, "events", &events.join("\n"))?;
        section(text, "held", &held.join(", "))?;
        section(text, "pending", &pending.join("\n"))
    }

    fn event(&self, event: &Event) -> String {
        match event {
            Event::Granted { request, token, .. } => {
                format!("{} granted, fencing token {token}", self.number(*request))
            }
            other => format!("{other:?}"),
        }
    }

    fn entry(&self, entry: &LockInfo) -> String {
        format!("{} {}", self.number(entry.request), Wish(entry.mode, &entry.scope))
    }

    /// Why a request is not held: locks that must go first, and earlier requests whose turn comes first.
    fn reason(&self, request: RequestId) -> String {
        let blockers = self.manager.blockers(request);
        let held = self.numbers(&blockers.hard);
        let earlier = self.numbers(&blockers.soft);
        match (held.is_empty(), earlier.is_empty()) {
            (false, true) => format!("waits for {held}"),
            (true, false) => format!("stands behind {earlier}"),
            _ => format!("waits for {held}, stands behind {earlier}"),
        }
    }

    fn number(&self, request: RequestId) -> String {
        match self.requests.iter().position(|&known| known == request) {
            Some(index) => format!("#{}", index + 1),
            None => request.to_string(),
        }
    }

    fn numbers(&self, requests: &[RequestId]) -> String {
        let numbers: Vec<String> = requests.iter().map(|&r| self.number(r)).collect();
        numbers.join(", ")
    }
}

/// The heading stands before the first line only; an empty section says so.
fn section(text: &mut String, heading: &str, body: &str) -> fmt::Result {
    let body = if body.is_empty() { "none" } else { body };
    for (index, line) in body.lines().enumerate() {
        let heading = if index == 0 { heading } else { "" };
        writeln!(text, "    {heading:<9}{line}")?;
    }
    Ok(())
}

/// A mode and a scope as the example writes them: `X {a, b}`.
struct Wish<'a>(Mode, &'a Scope);

impl fmt::Display for Wish<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.0 {
            Mode::Exclusive => 'X',
            Mode::Shared => 'S',
        };
        let names: Vec<String> = self.1.names().iter().map(ToString::to_string).collect();
        write!(f, "{letter} {{{}}}", names.join(", "))
    }
}
