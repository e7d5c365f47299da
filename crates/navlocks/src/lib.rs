//! Named locks for async Rust: shared and exclusive, fair, abortable, stealable, queryable. The Web Locks API, in
//! process.
#![forbid(unsafe_code)]

// In reading order: the way in, a request, the lock it gives, what can be known, and how it is done.
mod locks;
mod request;
mod acquire;
mod lock;
mod auto;
mod error;
mod query;
mod events;
mod deadlock;
pub mod lineage;
mod block_on;
mod space;
mod watch;
mod wakes;
mod clock;
mod sync;

pub use acquire::{Acquire, TryAcquire};
pub use auto::{AutoLock, ReleaseError, Released, WeakAutoLock};
pub use block_on::block_on;
pub use deadlock::DeadlockPolicy;
pub use error::{Cycle, Loss, QueryError, RequestError};
pub use events::{Event, Events, What};
pub use lock::{Contended, Lock, Lost};
pub use locks::{Builder, Locks};
pub use navlocks_core::{
    Blockers, ClientId, EmptyScope, EscapeError, FencingToken, Mode, Name, RequestId, Scope,
};
pub use query::{LockInfo, Snapshot};
pub use request::{Request, TryRequest};
