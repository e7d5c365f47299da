//! The vocabulary of models, histories and stories: small ordinals instead of ids, letters instead
//! of names.

use core::fmt;
use std::collections::BTreeSet;

/// A client, by the order in which it joined.
pub type ClientNo = usize;
/// A request, by the order in which it was made.
pub type RequestNo = usize;
/// A name, as a letter.
pub type Name = char;
/// "A lock has an associated scope which is a set of DOMStrings."
pub type Scope = BTreeSet<Name>;

/// "A mode is either "exclusive" or "shared"." Or it allows a number of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the two words of the standard, and a number")]
pub enum Mode {
    Exclusive,
    Shared,
    Limited(u8),
}

impl Mode {
    /// Returns how many holders of a name, itself included, the mode allows.
    pub fn limit(self) -> usize {
        match self {
            Self::Exclusive => 1,
            Self::Shared => usize::MAX,
            Self::Limited(limit) => usize::from(limit),
        }
    }
}

/// The behaviour of a request that cannot be granted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It waits for its turn.
    Queue,
    /// It is answered so and leaves no trace (`ifAvailable`).
    IfAvailable,
    /// It takes the held locks away and keeps the queue (`steal`).
    Steal,
    /// It takes the held locks away and empties the queue (the `steal` of the draft with
    /// `acquire`).
    StealAll,
    /// A reader that stands before all waiters (an option of the explainer).
    Overtake,
}

/// The fate of the locks of a suspended client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It keeps them until another client would have to wait for it.
    EvictOnContention,
    /// It loses them at once, and each later one when its turn comes.
    ReleaseAtOnce,
}

/// Why a lock was lost, or a pending request aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the input that did it")]
pub enum LossCause {
    Stolen { by: RequestNo },
    ForceReleased,
    HeldTooLong,
    Evicted,
    Suspended,
}

/// The events for clients, or for the embedder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum Event {
    Granted { request: RequestNo, client: ClientNo, token: u64 },
    Lost { request: RequestNo, client: ClientNo, cause: LossCause },
    Aborted { request: RequestNo, client: ClientNo, cause: LossCause },
    Evicted { client: ClientNo },
}

impl Event {
    /// Returns the client of the event.
    pub fn client(&self) -> ClientNo {
        match *self {
            Self::Granted { client, .. }
            | Self::Lost { client, .. }
            | Self::Aborted { client, .. }
            | Self::Evicted { client } => client,
        }
    }
}

/// The outcome of a request at the moment it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the three answers of the engine")]
pub enum Decided {
    Granted { token: u64 },
    Unavailable,
    Pending,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is a sentence")]
pub enum Refusal {
    UnknownClient,
    ClientSuspended,
    ExclusiveOvertake,
}

/// The state of a live request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the two states of a live entry")]
pub enum State {
    Pending,
    Held { token: u64 },
}

/// One line of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub struct Info {
    pub request: RequestNo,
    pub client: ClientNo,
    pub scope: Scope,
    pub mode: Mode,
    pub token: Option<u64>,
}

/// Held in the order of the grants, pending in the order of the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the two lists of the standard's snapshot")]
pub struct Snapshot {
    pub held: Vec<Info>,
    pub pending: Vec<Info>,
}

/// The blockers of a pending request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blockers {
    /// The holders that conflict with it.
    pub hard: Vec<RequestNo>,
    /// The waiters before it that conflict with it.
    pub soft: Vec<RequestNo>,
}

/// Clients that wait for each other, and the entries through which they do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "said above")]
pub struct Deadlock {
    pub requests: Vec<RequestNo>,
    pub clients: Vec<ClientNo>,
}

/// One call of a lock manager.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "one per verb of the engine")]
pub enum Input {
    Join,
    Request { client: ClientNo, scope: Scope, mode: Mode, wait: Wait },
    Release(RequestNo),
    Downgrade(RequestNo, Mode),
    Expire(RequestNo),
    Abort(RequestNo),
    Terminate(ClientNo),
    ForceRelease(Name),
    Suspend(ClientNo, Policy),
    Resume(ClientNo),
    Query,
    AdvanceToken(u64),
    Poll,
}

/// The return value of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each belongs to the inputs it answers")]
pub enum Answer {
    Joined(ClientNo),
    Made(RequestNo, Decided),
    Refused(Refusal),
    /// Whether it had an effect.
    Effect(bool),
    /// How many locks it released.
    Count(usize),
    Snapshot(Snapshot),
    Event(Option<Event>),
    Nothing,
}

/// Displays a scope in a story.
pub(crate) struct Braces<'a>(pub(crate) &'a Scope);

impl fmt::Display for Braces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "{{{}}}", names.join(","))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Limited(limit) => write!(f, "limit {limit}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "in turn",
            Self::IfAvailable => "if available",
            Self::Steal => "by steal",
            Self::StealAll => "by steal from all",
            Self::Overtake => "overtaking",
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EvictOnContention => "evict on contention",
            Self::ReleaseAtOnce => "release at once",
        })
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stolen { by } => write!(f, "stolen by r{by}"),
            Self::ForceReleased => f.write_str("force-released"),
            Self::HeldTooLong => f.write_str("held too long"),
            Self::Evicted => f.write_str("evicted"),
            Self::Suspended => f.write_str("suspended"),
        }
    }
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { token } => write!(f, "granted, token {token}"),
            Self::Unavailable => f.write_str("unavailable"),
            Self::Pending => f.write_str("pending"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { request, client, token } => {
                write!(f, "c{client} is granted r{request}, token {token}")
            }
            Self::Lost { request, client, cause } => {
                write!(f, "c{client} loses r{request}: {cause}")
            }
            Self::Aborted { request, client, cause } => {
                write!(f, "c{client} waits no more for r{request}: {cause}")
            }
            Self::Evicted { client } => write!(f, "c{client} is evicted"),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join => f.write_str("a client joins"),
            Self::Request { client, scope, mode, wait } => {
                write!(f, "c{client} requests {mode} {} {wait}", Braces(scope))
            }
            Self::Release(request) => write!(f, "release r{request}"),
            Self::Downgrade(request, mode) => write!(f, "downgrade r{request} to {mode}"),
            Self::Expire(request) => write!(f, "expire r{request}"),
            Self::Abort(request) => write!(f, "abort r{request}"),
            Self::Terminate(client) => write!(f, "terminate c{client}"),
            Self::ForceRelease(name) => write!(f, "force-release {name}"),
            Self::Suspend(client, policy) => write!(f, "suspend c{client}, {policy}"),
            Self::Resume(client) => write!(f, "resume c{client}"),
            Self::Query => f.write_str("query"),
            Self::AdvanceToken(at_least) => write!(f, "advance the token to at least {at_least}"),
            Self::Poll => f.write_str("poll"),
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |infos: &[Info]| {
            infos
                .iter()
                .map(|info| {
                    let token =
                        info.token.map(|token| format!(" token {token}")).unwrap_or_default();
                    format!(
                        "r{} of c{}: {} {}{token}",
                        info.request,
                        info.client,
                        info.mode,
                        Braces(&info.scope)
                    )
                })
                .collect::<Vec<_>>()
                .join("; ")
        };
        write!(f, "held [{}] pending [{}]", list(&self.held), list(&self.pending))
    }
}
