//! The types of the header.

use std::ffi::c_void;

/// The outcome of a call.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum navlocks_status {
    /// It is done. Of a request: it holds its lock.
    Ok = 0,
    /// The request waits; an event follows.
    Pending = 1,
    /// The lock is not available, and the request is over.
    Unavailable = 2,
    /// There is nothing to return, or nothing was to be done.
    Nothing = 3,
    /// A handle was never given, or ended.
    Unknown = 4,
    /// A pointer is null, or a number has no meaning.
    Invalid = 5,
    /// A text is not UTF-8.
    InvalidText = 6,
    /// The client has a live request of this number.
    NumberInUse = 7,
    /// A limit is reached.
    Limit = 8,
    /// The request is refused: its client is suspended, or it overtakes and is not shared.
    Refused = 9,
    /// The buffer is too small; the needed length is returned.
    TooSmall = 10,
}

/// Texts are UTF-8, and lengths are in bytes.
pub const NAVLOCKS_UTF8: u32 = 0;
/// Texts are UTF-16, any code units, and lengths are in code units.
pub const NAVLOCKS_UTF16: u32 = 1;

/// A text of the caller, copied by the call.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Debug)]
pub struct navlocks_text {
    /// May be null if the length is 0.
    pub data: *const c_void,
    /// In units of the encoding.
    pub length: usize,
    /// NAVLOCKS_UTF8 or NAVLOCKS_UTF16.
    pub encoding: u32,
}

/// The limit of a shared request, which has none.
pub const NAVLOCKS_SHARED: u32 = 0;
/// The limit of an exclusive request. A larger limit is a semaphore with as many holders.
pub const NAVLOCKS_EXCLUSIVE: u32 = 1;

/// The request waits in order.
pub const NAVLOCKS_WAIT_QUEUE: u32 = 0;
/// The request is over if it cannot be granted at once.
pub const NAVLOCKS_WAIT_IF_AVAILABLE: u32 = 1;
/// The request takes the lock from its holders.
pub const NAVLOCKS_WAIT_STEAL: u32 = 2;
/// The request takes the lock from its holders, and aborts all waiters.
pub const NAVLOCKS_WAIT_STEAL_ALL: u32 = 3;
/// The shared request stands before all waiters.
pub const NAVLOCKS_WAIT_OVERTAKE: u32 = 4;

/// A suspended client keeps its locks until another client needs one.
pub const NAVLOCKS_EVICT_ON_CONTENTION: u32 = 0;
/// A suspended client loses its locks at once.
pub const NAVLOCKS_RELEASE_AT_ONCE: u32 = 1;

/// The kind of an event.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum navlocks_event_kind {
    /// The request holds its lock; `value` is the fencing token.
    Granted = 1,
    /// The request wanted the lock only if available, and it is not.
    Unavailable = 2,
    /// Another client aborted the pending request; `value` is a cause.
    Aborted = 5,
    /// The lock was taken away; `value` is a cause.
    Lost = 6,
    /// A request waits for this lock, which its client watches.
    Contended = 8,
}

/// Another request stole the lock: `thief` is its id.
pub const NAVLOCKS_CAUSE_STOLEN: u64 = 0;
/// The lock was force-released.
pub const NAVLOCKS_CAUSE_FORCE_RELEASED: u64 = 1;
/// The lock was held for as long as its request allowed.
pub const NAVLOCKS_CAUSE_HELD_TOO_LONG: u64 = 2;
/// The client was suspended, and another client needed the lock.
pub const NAVLOCKS_CAUSE_EVICTED: u64 = 3;
/// The client was suspended.
pub const NAVLOCKS_CAUSE_SUSPENDED: u64 = 4;
/// The client ended.
pub const NAVLOCKS_CAUSE_CLIENT_ENDED: u64 = 5;

/// An event of a request.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Debug)]
pub struct navlocks_event {
    /// The kind.
    pub kind: navlocks_event_kind,
    /// The client of the request.
    pub client: u64,
    /// The number that the client gave to the request.
    pub number: u64,
    /// The token of a grant, or a cause.
    pub value: u64,
    /// The id of the request that stole the lock, or 0.
    pub thief: u64,
}

/// A lock or a request of a query.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Clone, Copy, Debug)]
pub struct navlocks_lock {
    /// The client.
    pub client: u64,
    /// The number that the client gave to the request.
    pub number: u64,
    /// The id of the request in its partition.
    pub id: u64,
    /// The fencing token; 0 while the request is pending.
    pub token: u64,
    /// When it was requested, and once held when it was granted: milliseconds since 1970.
    pub since: u64,
    /// The limit: NAVLOCKS_SHARED, NAVLOCKS_EXCLUSIVE or larger.
    pub limit: u32,
    /// How many names it has.
    pub names: u32,
}
