//! The standard surface's argument check, apart from the engine so that every surface shares it.

use core::fmt;

use crate::{Mode, Name, Request, Wait};

/// What the check needs to know of the calling environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Whether its document is fully active. True where there is no document, as in a worker.
    pub fully_active: bool,
    /// Whether a lock manager can be obtained for it. False for an opaque origin.
    pub has_lock_manager: bool,
}

/// The standard's `LockOptions`, converted.
///
/// <https://w3c.github.io/web-locks/#dictdef-lockoptions>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockOptions {
    /// Shared or exclusive.
    pub mode: Mode,
    /// Only if it can be granted without waiting.
    pub if_available: bool,
    /// Take it from whoever holds it.
    pub steal: bool,
    /// The state of the abort signal, if one was given.
    pub signal: Option<Signal>,
}

/// The state of an abort signal at the time of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// May still abort the request.
    Live,
    /// Already aborted.
    Aborted,
}

/// The checks of the `request()` method, in their order: four options enter, and leave as a [`Request`] that cannot
/// contradict itself.
///
/// <https://w3c.github.io/web-locks/#dom-lockmanager-request>
///
/// # Errors
///
/// The first check that fails; nothing else has happened then.
pub fn request_method_steps(
    environment: Environment,
    name: Name,
    options: LockOptions,
) -> Result<Request, Rejection> {
    // Steps 1 and 2 are the caller's: defaults for absent options, and which environment it is.
    // Step 3. If the associated Document is not fully active, reject with an InvalidStateError.
    if !environment.fully_active {
        return Err(Rejection::NotFullyActive);
    }
    // Step 4. If obtaining a lock manager returned failure, reject with a SecurityError.
    if !environment.has_lock_manager {
        return Err(Rejection::NoLockManager);
    }
    // Step 5. If name starts with U+002D HYPHEN-MINUS, reject with a NotSupportedError.
    if name.starts_with_hyphen() {
        return Err(Rejection::ReservedName);
    }
    // Step 6. If both steal and ifAvailable are true, reject with a NotSupportedError.
    if options.steal && options.if_available {
        return Err(Rejection::StealIfAvailable);
    }
    // Step 7. If steal is true and mode is not exclusive, reject with a NotSupportedError.
    if options.steal && options.mode != Mode::Exclusive {
        return Err(Rejection::StealShared);
    }
    // Step 8. If signal exists and steal or ifAvailable is true, reject with a NotSupportedError.
    if options.signal.is_some() && options.steal {
        return Err(Rejection::SignalSteal);
    }
    if options.signal.is_some() && options.if_available {
        return Err(Rejection::SignalIfAvailable);
    }
    // Step 9. If signal exists and is aborted, reject with its abort reason.
    if options.signal == Some(Signal::Aborted) {
        return Err(Rejection::SignalAborted);
    }
    // Steps 10 to 12 are the caller's: the promise, and requesting what is returned here.
    let wait = match (options.steal, options.if_available) {
        (true, _) => Wait::Steal,
        (_, true) => Wait::IfAvailable,
        _ => Wait::Queue,
    };
    Ok(Request { scope: name.into(), mode: options.mode, wait })
}

/// The checks of the `query()` method, in their order.
///
/// <https://w3c.github.io/web-locks/#dom-lockmanager-query>
///
/// # Errors
///
/// The first check that fails.
pub fn query_method_steps(environment: Environment) -> Result<(), Rejection> {
    // Step 1 is the caller's: which environment it is.
    // Step 2. If the associated Document is not fully active, reject with an InvalidStateError.
    if !environment.fully_active {
        return Err(Rejection::NotFullyActive);
    }
    // Step 3. If obtaining a lock manager returned failure, reject with a SecurityError.
    if !environment.has_lock_manager {
        return Err(Rejection::NoLockManager);
    }
    // Steps 4 to 6 are the caller's: the promise, and the snapshot it resolves with.
    Ok(())
}

/// Why the standard surface refuses a call. Listed in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The document is not fully active.
    NotFullyActive,
    /// The environment has no lock manager: its origin is opaque.
    NoLockManager,
    /// The name starts with `-`.
    ReservedName,
    /// `steal` and `ifAvailable` together.
    StealIfAvailable,
    /// `steal` with a shared mode.
    StealShared,
    /// `signal` and `steal` together.
    SignalSteal,
    /// `signal` and `ifAvailable` together.
    SignalIfAvailable,
    /// The signal is already aborted.
    SignalAborted,
}

impl Rejection {
    /// The name of the DOMException to reject with; none where the signal's own reason is to be used.
    pub fn dom_exception_name(self) -> Option<&'static str> {
        match self {
            Self::NotFullyActive => Some("InvalidStateError"),
            Self::NoLockManager => Some("SecurityError"),
            Self::ReservedName
            | Self::StealIfAvailable
            | Self::StealShared
            | Self::SignalSteal
            | Self::SignalIfAvailable => Some("NotSupportedError"),
            Self::SignalAborted => None,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFullyActive => "the document is not fully active",
            Self::NoLockManager => {
                "an opaque origin has no locks: serve the page from an origin of its own"
            }
            Self::ReservedName => {
                "names that start with '-' are reserved: choose another first character"
            }
            Self::StealIfAvailable => {
                "'steal' and 'ifAvailable' cannot be used together: a steal never waits"
            }
            Self::StealShared => "'steal' needs mode 'exclusive'",
            Self::SignalSteal => {
                "'signal' and 'steal' cannot be used together: a steal never waits"
            }
            Self::SignalIfAvailable => {
                "'signal' and 'ifAvailable' cannot be used together: such a request never waits"
            }
            Self::SignalAborted => "the signal was aborted before the request was made",
        })
    }
}

impl core::error::Error for Rejection {}
