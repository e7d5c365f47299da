//! The answers to a dashboard: texts cut short, and one page of rows.

mod time;

use navlocks_core::{Mode, Name};
use navlocks_wire::member::{many, mode, optional, single};
use navlocks_wire::{ClientKey, RequestKey, UnclaimedSession};
use serde::{Deserialize, Serialize};

use super::view::{Space, is_zero};
pub use time::{Heat, Lane, Moment, Span, Time};

/// The names in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Overview {
    /// How long the walk over all names took, in milliseconds.
    pub took_ms: u64,
    /// The partitions that the dashboard may see: the first ones by their names.
    pub spaces: Vec<SpaceInfo>,
    /// How many partitions there are.
    pub space_count: u64,
    /// How many names were read.
    pub names: u64,
    /// How many of them match the filter.
    pub matching: u64,
    /// Locks held in all these partitions.
    pub held: u64,
    /// Requests pending in all these partitions.
    pub pending: u64,
    /// The page of rows.
    pub rows: Vec<Row>,
}

/// A partition and the numbers of its locks and requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceInfo {
    /// The partition.
    pub space: Space,
    /// Locks held.
    pub held: u64,
    /// Requests pending.
    pub pending: u64,
}

/// One name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// Its partition.
    pub space: Space,
    /// The name, or its beginning.
    #[serde(with = "single")]
    pub name: Name,
    /// The length of the name in UTF-16 code units, if only its beginning is shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub length: u64,
    /// How many requests hold it.
    pub held: u64,
    /// How many requests wait for it.
    pub waiting: u64,
    /// How long the first waiter has waited, in milliseconds.
    pub wait_ms: u64,
    /// How long the first holder has held it, in milliseconds.
    pub hold_ms: u64,
    /// The first request: a holder, where there is one.
    pub first: Entry,
}

/// A request as a dashboard shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// The request, and once granted the lock.
    pub request: RequestKey,
    /// Its client.
    pub client: ClientKey,
    /// The first names of the request, or their beginnings.
    #[serde(with = "many")]
    pub names: Vec<Name>,
    /// How many names are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Shared or exclusive.
    #[serde(default, with = "mode", skip_serializing_if = "mode::is_exclusive")]
    pub mode: Mode,
    /// The tag of the request.
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    pub tag: Option<Name>,
    /// The process of the client, where the service knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its fencing token, once it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// How long it has been held or pending, in milliseconds.
    pub ms: u64,
    /// How long it may still be held, in milliseconds, if its hold has a maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// Its process is stopped, as by Ctrl-Z. Told of the first request of a name, and of holders.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// All requests for one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Queue {
    /// The name.
    #[serde(with = "single")]
    pub name: Name,
    /// Its partition.
    pub space: Space,
    /// How many requests hold it.
    pub held: u64,
    /// How many requests wait for it.
    pub waiting: u64,
    /// The first holders.
    pub holders: Vec<Entry>,
    /// A page of waiters, in queue order.
    pub waiters: Vec<Blocked>,
}

/// A waiter and its blockers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The waiter.
    pub entry: Entry,
    /// How many held locks block it.
    pub hard: u64,
    /// How many pending earlier requests block it.
    pub soft: u64,
    /// The first of all these blockers.
    pub by: Vec<Entry>,
}

/// The clients that block others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The clients that wait for no other and those in deadlocks, sorted by waiters behind them.
    pub roots: Vec<Node>,
    /// How many roots there are.
    pub count: u64,
    /// Partitions with too many requests to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Space>,
}

/// A client in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Node {
    /// Its partition.
    pub space: Space,
    /// Its request there: for a root a lock that it holds, otherwise the pending request.
    pub entry: Entry,
    /// The name for which it waits.
    #[serde(default, with = "many", skip_serializing_if = "Vec::is_empty")]
    pub waits_on: Vec<Name>,
    /// How many requests wait behind it, directly or not.
    pub behind: u64,
    /// True if it is part of a deadlock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deadlocked: bool,
    /// The first clients that wait for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Self>,
    /// How many of these clients are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// The deadlocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlocks {
    /// The present deadlocks, and then the last ones.
    pub rings: Vec<Ring>,
    /// Partitions with too many requests to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Space>,
}

/// A cycle of clients that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ring {
    /// Its partition.
    pub space: Space,
    /// How long ago it was found first, in milliseconds.
    pub found_ms: u64,
    /// How long ago it ended, in milliseconds; none while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_ms: Option<u64>,
    /// The clients of a shortest cycle, each waiting for the next, the last for the first.
    pub hops: Vec<Hop>,
    /// How many further clients are part of it.
    pub others: u64,
    /// It is a cycle only because requests share a client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possible: bool,
}

/// A client in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The client.
    pub client: ClientKey,
    /// Its pending request; none if it waits for a process that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Entry>,
    /// The name that it waits for.
    #[serde(default, with = "many", skip_serializing_if = "Vec::is_empty")]
    pub name: Vec<Name>,
    /// The request of the next client that blocks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Entry>,
}

/// The sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// How many there are.
    pub count: u64,
    /// How many match the filter.
    pub matching: u64,
    /// The page of rows, those without a connection first, then those with the most requests.
    pub rows: Vec<SessionInfo>,
    /// Sessions of an earlier service that have not come back yet; for dashboards that see all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclaimed: Vec<UnclaimedSession>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SessionInfo {
    /// Its number.
    pub session: u32,
    /// The tenant, if it has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The web origin, if it is a page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// Its process, where the service knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its process is stopped, as by Ctrl-Z.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// How it reaches the service.
    pub way: Way,
    /// True if it has a connection.
    pub connected: bool,
    /// How long ago the service last received a message of it, in milliseconds.
    pub heard_ms: u64,
    /// Its lease, in milliseconds; none if it ends with its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How much of the lease is left, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    /// How many clients it has.
    pub clients: u64,
    /// Locks held.
    pub held: u64,
    /// Requests pending.
    pub pending: u64,
    /// The first tag of its requests, for people.
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    pub tag: Option<Name>,
    /// The first of its requests, held ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
}

/// How a session reaches the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// By the Unix socket.
    Unix,
    /// By TCP.
    Tcp,
}

/// The latest events, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// The number of the last event.
    pub last: u64,
    /// True if some of the requested events were dropped.
    pub missed: bool,
    /// The events.
    pub events: Vec<Happened>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Happened {
    /// Its number.
    pub number: u64,
    /// How long ago it happened, in milliseconds.
    pub ago_ms: u64,
    /// Its partition.
    pub space: Space,
    /// The kind of the event, such as `granted`.
    pub what: String,
    /// The request; none if an operator acted on a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// The operator of the action, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// The effect of an action, or of its preview.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// True if it was done.
    pub done: bool,
    /// How many locks and requests are lost by it.
    pub count: u64,
    /// The first of them.
    pub losses: Vec<Entry>,
}

/// The answer to a question of a dashboard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// To `overview`.
    Overview(Overview),
    /// To `queue`: none if no request wants the name.
    Queue(Option<Queue>),
    /// To `tree`.
    Tree(Tree),
    /// To `deadlocks`.
    Deadlocks(Deadlocks),
    /// To `clients`.
    Clients(Clients),
    /// To `time`.
    Time(Box<Time>),
    /// To `events`.
    Events(Events),
    /// To `service`.
    Service(ServiceInfo),
    /// To `act`.
    Acted(Acted),
}

/// The service, and the rights of a dashboard there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServiceInfo {
    /// The name and version of the service.
    pub service: String,
    /// The dashboard sees the partitions of all tenants.
    pub all: bool,
    /// The dashboard may act.
    pub acts: bool,
    /// The name under which its actions are recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// How long the service has recorded events, in milliseconds.
    pub recorded_ms: u64,
    /// The node, if the service is one of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<ServiceNode>,
}

/// A node of a cluster. Its dashboard shows the partitions of its own slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServiceNode {
    /// The address at which clients and other nodes reach it.
    pub address: String,
    /// How many slots the cluster has.
    pub slots: u32,
    /// How many of them the node owns.
    pub owned: u32,
    /// Its slots that grant nothing until their sessions have claimed or ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovering: Vec<u32>,
}
