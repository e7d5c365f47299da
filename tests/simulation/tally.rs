//! Counts of what happened in a world.

use std::fmt;
use std::ops::AddAssign;

use navlocks_client::LossCause;

/// Counts of what happened in a world, or to one client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Messages in both directions.
    pub(crate) messages: u64,
    /// Transactions that changed something in etcd, and their operations.
    pub(crate) transactions: u64,
    pub(crate) operations: u64,
    /// Sockets that clients connected, or tried to.
    pub(crate) dials: u64,
    /// Locks that clients lost, and those among them whose lease had ended.
    pub(crate) lost: u64,
    pub(crate) lapsed: u64,
    /// When the last lock was granted.
    pub(crate) last_grant: u64,
}

impl Tally {
    pub(crate) fn lose(&mut self, cause: Option<&LossCause>) {
        self.lost += 1;
        self.lapsed += u64::from(cause == Some(&LossCause::LeaseLapsed));
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.transactions += other.transactions;
        self.operations += other.operations;
        self.dials += other.dials;
        self.lost += other.lost;
        self.lapsed += other.lapsed;
        self.last_grant = self.last_grant.max(other.last_grant);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, transactions, operations, dials, lost, .. } = self;
        write!(f, "{messages} messages, {dials} dials, {lost} locks lost; ")?;
        write!(f, "{transactions} transactions of etcd with {operations} operations")
    }
}
