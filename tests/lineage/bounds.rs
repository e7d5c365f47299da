//! Bounds: all handles and futures of the release styles are `Send`.

use std::time::Duration;

use navlocks::lineage::adapters::{
    ExplicitLock, auto_from_explicit, explicit_from_auto, explicit_from_scoped,
    scoped_from_explicit,
};
use navlocks::lineage::{AcquireOptions, acquire, request_flag, request_lock};
use navlocks::lineage::{AutoLock, ReleaseError, Released, WeakAutoLock};
use navlocks::{Lock, Locks, Mode};

fn is_shared<T: Send + Sync + Unpin + 'static>() {}

/// Polls nothing: compiling is the test.
fn can_be_spawned(_: impl Future + Send) {}

#[test]
fn handles_and_futures_can_move_to_other_threads() {
    is_shared::<AutoLock>();
    is_shared::<WeakAutoLock>();
    is_shared::<Released>();
    is_shared::<ReleaseError>();
    is_shared::<ExplicitLock>();
    let locks = Locks::new();
    let request = || locks.request("a");
    can_be_spawned(request().auto());
    can_be_spawned(request().if_available().auto());
    can_be_spawned(request_lock(&locks, "a", Mode::Shared));
    can_be_spawned(request_flag(&locks, "a", Mode::Shared, Some(Duration::ZERO)));
    can_be_spawned(acquire(&locks, "a", AcquireOptions::default(), async |_| ()));
    can_be_spawned(explicit_from_auto(request().auto()));
    can_be_spawned(explicit_from_scoped(request()));
    can_be_spawned(auto_from_explicit(request()));
    can_be_spawned(scoped_from_explicit(request(), async |_: &Lock| ()));
    crate::support::assert_idle(&locks);
}
