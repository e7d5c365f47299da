//! The end of a lock whose time is over. The engine has no clock, so its embedder says when.

use crate::support::{Table, x};

#[test]
fn h01_lock_whose_time_is_over_is_lost_before_the_next_request_is_granted() {
    let mut table = Table::new();
    table.holds("holder", "lock", x("a"));
    table.waits("other", "next", x("a"));
    let lock = table.id("lock");
    assert!(table.manager.expire(lock));
    assert_eq!(table.settle(), ["lost lock: held too long", "granted next"]);
    // It holds nothing any more, and a pending request never did.
    assert!(!table.manager.expire(lock));
}
