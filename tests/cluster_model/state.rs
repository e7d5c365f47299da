//! The state of a cluster in the model: etcd, nodes, clients and the network.
//!
//! Time is discrete and relative: every timer is an age in ticks that stops where nothing depends
//! on it any more.

use std::collections::VecDeque;

/// A client, by its place in the scenario. A client has one session.
pub(crate) type ClientNumber = u8;
/// A node, by its place in the model.
pub(crate) type NodeNumber = u8;
/// Ticks since an event.
pub(crate) type Age = u8;
pub(crate) type Epoch = u8;
pub(crate) type Token = u8;
/// The place of a waiter: the epoch in which it got it, and its number there.
pub(crate) type Place = (Epoch, u8);

/// The state of the whole model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) nodes: Vec<Node>,
    pub(crate) clients: Vec<Client>,
    /// Messages in flight, by client and node, oldest first.
    pub(crate) to_node: Vec<Vec<VecDeque<ToNode>>>,
    pub(crate) to_client: Vec<Vec<VecDeque<ToClient>>>,
    pub(crate) restarts: u8,
    pub(crate) history: History,
    /// The first rule of the checker that was broken.
    pub(crate) violation: Option<&'static str>,
}

/// The keys in etcd for the one slot of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Registry {
    pub(crate) owner: Option<NodeNumber>,
    /// True if the owner's key is that of the node's present incarnation.
    pub(crate) owner_is_current: bool,
    pub(crate) epoch: Epoch,
    /// Added to the epoch of the next owner.
    pub(crate) epoch_floor: Epoch,
    pub(crate) sessions: Vec<bool>,
    pub(crate) taken: Vec<Taken>,
    pub(crate) tokens_reserved_to: Token,
    pub(crate) grace_over: Epoch,
}

/// A steal, recorded before it is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taken {
    pub(crate) victim: (ClientNumber, u8),
    pub(crate) thief: (ClientNumber, u8),
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// True if its incarnation is in etcd.
    pub(crate) alive: bool,
    /// Ticks since it sent its last answered renewal.
    pub(crate) renewed: Age,
    /// A renewal in flight: ticks since it was sent, and whether etcd has applied it.
    pub(crate) renewal: Option<(Age, bool)>,
    pub(crate) renewals_left: u8,
    /// Ticks since it read the present revision of the owner's key; none if that key has changed
    /// since.
    pub(crate) seen: Option<Age>,
    pub(crate) owner: Option<Owner>,
}

/// The memory of a node that owns the slot, or assumes so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) epoch: Epoch,
    pub(crate) grace: Option<Grace>,
    /// Held entries in grant order, then pending ones in queue order.
    pub(crate) entries: Vec<Entry>,
    /// Ticks since the last message of each session that began or claimed here.
    pub(crate) heard: Vec<Option<Age>>,
    pub(crate) next_token: Token,
    pub(crate) tokens_reserved_to: Token,
    pub(crate) next_place: u8,
}

/// The time of an owner before its first grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grace {
    /// Ticks since the transaction that won the slot.
    pub(crate) won: Age,
    /// The claims, in order of arrival.
    pub(crate) claims: Vec<(ClientNumber, Claim)>,
}

/// The claim of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    pub(crate) epoch: Epoch,
    pub(crate) request: Option<Request>,
    /// Ticks since it was sent.
    pub(crate) age: Age,
}

/// A request in the engine of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) client: ClientNumber,
    pub(crate) request: u8,
    pub(crate) ask: Ask,
    /// The token; none while it is pending.
    pub(crate) token: Option<Token>,
    pub(crate) place: Place,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    /// The scope, a bit for each name.
    pub(crate) scope: u8,
    pub(crate) shared: bool,
    pub(crate) wait: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wait {
    Queue,
    IfAvailable,
    Steal,
}

impl Ask {
    /// Returns true if two requests exclude each other.
    pub(crate) fn conflicts(self, other: Self) -> bool {
        self.scope & other.scope != 0 && !(self.shared && other.shared)
    }
}

/// A client and the state that it assumes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) session: Session,
    /// Ticks since it sent its last answered message.
    pub(crate) belief: Age,
    /// The epoch of its last welcome or claim.
    pub(crate) epoch: Epoch,
    /// The node of its connection.
    pub(crate) at: NodeNumber,
    /// The number of its next request.
    pub(crate) next: u8,
    pub(crate) request: Option<Request>,
    pub(crate) ping_on_its_way: bool,
    pub(crate) pings_left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Session {
    None,
    Asked,
    Live,
    /// A claim is in flight; its locks are in doubt until it is answered.
    Claiming,
    Ended,
}

/// A request as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) number: u8,
    pub(crate) known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Sent,
    Waiting(Place),
    Held(Token),
}

/// A message to a node. Ages count from when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ToNode {
    Hello(Age),
    Ask(u8),
    Release(u8),
    Ping(Age),
    Claim(Claim),
    Bye,
}

/// A message to a client, with the epoch of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ToClient {
    pub(crate) epoch: Epoch,
    pub(crate) body: Body,
}

/// The answers, with the ages of the messages that they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Body {
    Welcome(Age),
    Granted(u8, Token),
    Queued(u8, Place),
    Unavailable(u8),
    Lost(u8),
    Pong(Age),
    /// The claim was judged: the claimed request, and its outcome.
    Claimed(Option<(u8, Option<Known>)>, Age),
    /// The session is not known any more.
    Refused,
}

/// The memory of the checker. No rule of the protocol reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// The largest tokens granted for each name: exclusive ones, and all.
    pub(crate) granted: Vec<(Token, Token)>,
}
