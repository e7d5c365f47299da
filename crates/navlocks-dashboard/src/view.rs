//! The questions of a dashboard.

use navlocks_core::{Mode, Name};
use navlocks_server::inspect::{self, PartitionKey};
use navlocks_wire::RequestKey;
use navlocks_wire::member::single;
use serde::{Deserialize, Serialize};

/// A question with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The number, which the answer repeats.
    pub id: u64,
    /// The question.
    pub view: View,
}

/// A question of a dashboard. Answered when its turn comes, in no particular order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The names in use, those with waiters first.
    Overview(Filter),
    /// All requests for one name.
    Queue(QueueOf),
    /// The clients that block others, each with the clients that wait behind it.
    Tree(Filter),
    /// The deadlocks of this moment, and the last ones.
    Deadlocks,
    /// The sessions.
    Clients(Filter),
    /// The last minutes of one partition.
    Time(TimeOf),
    /// The latest events.
    Events(EventsOf),
    /// The service, and the rights of the dashboard there.
    Service,
    /// Takes a lock or a session away, as an operator.
    Act(Act),
}

/// A partition, by name, tenant and origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Its name; missing for the default one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition: String,
    /// The tenant that it belongs to; missing if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The web origin that it belongs to; missing if none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

impl From<&PartitionKey> for Space {
    fn from(key: &PartitionKey) -> Self {
        let (tenant, origin) = (key.tenant().to_owned(), key.origin().to_owned());
        Self { partition: key.name().to_owned(), tenant, origin }
    }
}

impl From<&Space> for PartitionKey {
    fn from(space: &Space) -> Self {
        Self::new(&space.tenant, &space.origin, &space.partition)
    }
}

/// A filter of rows, and the page to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Filter {
    /// Only this partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// A part of the name, in any case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A part of the tag, in any case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// A client such as `12.0`, a session such as `12`, or a process such as `pid 4711`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Only names with a request of this mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ModeWord>,
    /// Only names whose first waiter has waited at least this long.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting_ms: u64,
    /// The order of the rows.
    #[serde(skip_serializing_if = "Order::is_wait")]
    pub order: Order,
    /// How many rows to skip.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: u64,
}

/// A mode by its name in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeWord {
    /// Exclusive.
    Exclusive,
    /// Shared.
    Shared,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Exclusive => Self::Exclusive,
            ModeWord::Shared => Self::Shared,
        }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The longest wait first, then the longest hold.
    #[default]
    Wait,
    /// The longest queue first.
    Queue,
    /// The longest hold first.
    Hold,
    /// By name.
    Name,
}

impl Order {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_wait(&self) -> bool {
        *self == Self::Wait
    }
}

/// Asks for one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueOf {
    /// Its partition.
    #[serde(default)]
    pub space: Space,
    /// The name.
    pub of: Named,
    /// How many waiters to skip.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: u64,
}

/// The two ways to name a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// By the name itself.
    Name(#[serde(with = "single")] Name),
    /// As the first name of a request, for names that are too long for a link.
    First(RequestKey),
}

/// Asks for the last minutes of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeOf {
    /// Its partition.
    pub space: Space,
    /// How long ago the minute of the lanes ended, in milliseconds.
    pub ago_ms: u64,
    /// The length of the lanes, in milliseconds.
    pub window_ms: u64,
}

/// Asks for the latest events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventsOf {
    /// Only events after this one.
    pub after: u64,
    /// The filter of the events.
    pub filter: Filter,
}

/// An action of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// The action.
    pub action: Action,
    /// True to only return what would be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview: bool,
}

/// An action of an operator. Requests are named by their ids: a name may have another holder by
/// now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Takes away this lock alone: its holder receives the loss as a forced release.
    Release(RequestKey),
    /// Steals the names of this lock from all their holders, and releases them.
    Steal(RequestKey),
    /// Ends a session and all its requests.
    EndSession(u32),
}

impl From<Action> for inspect::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::Release(key) => Self::Release(key),
            Action::Steal(key) => Self::Steal(key),
            Action::EndSession(number) => Self::EndSession(number),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}
