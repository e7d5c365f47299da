//! The functions of the header.

#![allow(unsafe_code, reason = "a name for C is an unsafe attribute")]
#![allow(clippy::not_unsafe_ptr_arg_deref, reason = "C has no unsafe functions; see memory.rs")]

use std::ffi::c_char;

use navlocks_core::{
    Answer, FencingToken, LossCause, Mode, Name, Request, Scope, SuspendPolicy, Wait,
};
use navlocks_threads::{Mail, News};

use crate::hosts::{self, Keep, client, effect, group, host, status};
use crate::memory::{self, name};
use crate::types::*;

/// Makes a host: lock spaces by partition. `key` is 16 bytes from a random source.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_host_new(key: *const u8, host: *mut u64) -> navlocks_status {
    status(|| {
        let bytes = memory::read(key, 16)?;
        let key = bytes.try_into().map_err(|_| navlocks_status::Invalid)?;
        memory::write(host, hosts::new_host(key));
        Ok(navlocks_status::Ok)
    })
}

/// Ends a host with all its groups.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_host_end(host: u64) -> navlocks_status {
    status(|| hosts::end_host(host).map(|()| navlocks_status::Ok))
}

/// Makes the fencing tokens of later grants at least this, for a host that continues another.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_advance_token(host_: u64, at_least: u64) -> navlocks_status {
    status(|| {
        let advanced = host(host_)?.advance_token(FencingToken::new(at_least));
        advanced.map(|()| navlocks_status::Ok).map_err(|_| navlocks_status::Invalid)
    })
}

/// Adds a group of clients that end together, such as a page and its workers. Their events have one
/// queue.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_group_new(host_: u64, group: *mut u64) -> navlocks_status {
    status(|| {
        memory::write(group, host(host_)?.add_mailbox(hosts::Polled).to_bits());
        Ok(navlocks_status::Ok)
    })
}

/// Ends a group with all its clients, as one input.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_group_end(host_: u64, group_: u64) -> navlocks_status {
    status(|| match host(host_)?.end(group(group_)?) {
        true => Ok(navlocks_status::Ok),
        false => Err(navlocks_status::Unknown),
    })
}

/// Adds a client of a group to a partition. `name` is its name in queries.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_client_open(
    host_: u64,
    group_: u64,
    partition: navlocks_text,
    name_: navlocks_text,
    client: *mut u64,
) -> navlocks_status {
    status(|| {
        let (partition, own) = (name(&partition)?, name(&name_)?);
        let member = host(host_)?.open(group(group_)?, partition, own)?;
        memory::write(client, member.to_bits());
        Ok(navlocks_status::Ok)
    })
}

/// Ends a client: its locks are released, its requests aborted.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_client_close(host_: u64, client_: u64) -> navlocks_status {
    status(|| match host(host_)?.close(client(client_)?) {
        true => Ok(navlocks_status::Ok),
        false => Err(navlocks_status::Unknown),
    })
}

/// Requests a lock on some names, under a number of the client's choice. `tag` and `id` may be
/// null. A grant and an unavailable lock are events as well.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_request(
    host_: u64,
    client_: u64,
    number: u64,
    names: *const navlocks_text,
    count: usize,
    limit: u32,
    wait: u32,
    tag: *const navlocks_text,
    id: *mut u64,
) -> navlocks_status {
    status(|| {
        let names: Result<Vec<Name>, _> = memory::read(names, count)?.iter().map(name).collect();
        let scope = Scope::new(names?).map_err(|_| navlocks_status::Invalid)?;
        let tag = memory::read(tag, usize::from(!tag.is_null()))?.first().map(name).transpose()?;
        let request = Request { scope, mode: mode(limit)?, wait: wait_of(wait)? };
        let made = host(host_)?.request(client(client_)?, number, &request, tag, &mut Keep);
        let (request, answer) = made?;
        memory::write(id, request.serial());
        Ok(match answer {
            Answer::Granted(_) => navlocks_status::Ok,
            Answer::Pending => navlocks_status::Pending,
            Answer::Unavailable => navlocks_status::Unavailable,
        })
    })
}

/// Releases a lock. Returns NAVLOCKS_STATUS_NOTHING if the request holds none.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_release(host_: u64, client_: u64, number: u64) -> navlocks_status {
    status(|| Ok(effect(host(host_)?.release(client(client_)?, number, &mut Keep))))
}

/// Aborts a pending request. Returns NAVLOCKS_STATUS_NOTHING if it is not pending.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_abort(host_: u64, client_: u64, number: u64) -> navlocks_status {
    status(|| Ok(effect(host(host_)?.abort(client(client_)?, number, &mut Keep))))
}

/// Ends a request, whether it is pending or holds its lock. Returns NAVLOCKS_STATUS_NOTHING if it
/// was over.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_cancel(host_: u64, client_: u64, number: u64) -> navlocks_status {
    status(|| Ok(effect(host(host_)?.cancel(client(client_)?, number, &mut Keep))))
}

/// Takes a lock away because its time is over. Returns NAVLOCKS_STATUS_NOTHING if the request holds
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_expire(host_: u64, client_: u64, number: u64) -> navlocks_status {
    status(|| Ok(effect(host(host_)?.expire(client(client_)?, number, &mut Keep))))
}

/// Gives a held lock a larger limit, or none by NAVLOCKS_SHARED. Returns NAVLOCKS_STATUS_NOTHING if
/// no lock is held, or if the limit would become smaller.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_downgrade(
    host_: u64,
    client_: u64,
    number: u64,
    limit: u32,
) -> navlocks_status {
    status(|| {
        let (host, client, mode) = (host(host_)?, client(client_)?, mode(limit)?);
        Ok(effect(host.downgrade(client, number, mode, &mut Keep).is_ok()))
    })
}

/// Takes away all locks held on a name. `count` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_force_release(
    host_: u64,
    client_: u64,
    name_: navlocks_text,
    count: *mut usize,
) -> navlocks_status {
    status(|| {
        let released = host(host_)?.force_release(client(client_)?, &name(&name_)?, &mut Keep);
        memory::write(count, released);
        Ok(navlocks_status::Ok)
    })
}

/// Suspends a client under a policy. It gets its events when it is resumed.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_suspend(host_: u64, client_: u64, policy: u32) -> navlocks_status {
    status(|| {
        let policy = match policy {
            NAVLOCKS_EVICT_ON_CONTENTION => SuspendPolicy::EvictOnContention,
            NAVLOCKS_RELEASE_AT_ONCE => SuspendPolicy::ReleaseAtOnce,
            _ => return Err(navlocks_status::Invalid),
        };
        Ok(effect(host(host_)?.suspend(client(client_)?, policy, &mut Keep)))
    })
}

/// Resumes a suspended client.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_resume(host_: u64, client_: u64) -> navlocks_status {
    status(|| Ok(effect(host(host_)?.resume(client(client_)?, &mut Keep))))
}

/// Asks for one event when a request waits for this lock.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_watch_contention(
    host_: u64,
    client_: u64,
    number: u64,
) -> navlocks_status {
    status(|| {
        host(host_)?.watch_contention(client(client_)?, number, &mut Keep);
        Ok(navlocks_status::Ok)
    })
}

/// Takes the next event of a group. Returns NAVLOCKS_STATUS_NOTHING if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_poll_event(
    host_: u64,
    group_: u64,
    event: *mut navlocks_event,
) -> navlocks_status {
    status(|| {
        let (host, group) = (host(host_)?, group(group_)?);
        let mut mail: Option<Mail> = None;
        host.take_mail(group, true, &mut mail);
        let Some(found) = mail.as_ref().and_then(event_of) else {
            return Ok(navlocks_status::Nothing);
        };
        memory::write(event, found);
        Ok(navlocks_status::Ok)
    })
}

/// Returns a sentence about a status, which lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_status_text(status: navlocks_status) -> *const c_char {
    let text = match status {
        navlocks_status::Ok => c"it is done",
        navlocks_status::Pending => c"the request waits: an event follows",
        navlocks_status::Unavailable => c"the lock is not available: the request is over",
        navlocks_status::Nothing => c"there is nothing to return or to do",
        navlocks_status::Unknown => c"the handle is not known here: it ended",
        navlocks_status::Invalid => c"an argument has no meaning: see the header",
        navlocks_status::InvalidText => c"the text is not UTF-8",
        navlocks_status::NumberInUse => c"a request of this number is live: use another number",
        navlocks_status::Limit => c"a limit of the host is reached",
        navlocks_status::Refused => {
            c"the request is refused: its client is suspended, or it overtakes and is not shared"
        }
        navlocks_status::TooSmall => c"the buffer is too small: use the length that was returned",
    };
    text.as_ptr()
}

fn mode(limit: u32) -> Result<Mode, navlocks_status> {
    match limit {
        NAVLOCKS_SHARED => Ok(Mode::Shared),
        limit => Mode::limited(limit).map_err(|_| navlocks_status::Invalid),
    }
}

fn wait_of(wait: u32) -> Result<Wait, navlocks_status> {
    Ok(match wait {
        NAVLOCKS_WAIT_QUEUE => Wait::Queue,
        NAVLOCKS_WAIT_IF_AVAILABLE => Wait::IfAvailable,
        NAVLOCKS_WAIT_STEAL => Wait::Steal,
        NAVLOCKS_WAIT_STEAL_ALL => Wait::StealAll,
        NAVLOCKS_WAIT_OVERTAKE => Wait::Overtake,
        _ => return Err(navlocks_status::Invalid),
    })
}

fn event_of(mail: &Mail) -> Option<navlocks_event> {
    let (kind, value, thief) = match mail.news {
        News::Granted(token) => (navlocks_event_kind::Granted, token.get(), 0),
        News::Unavailable => (navlocks_event_kind::Unavailable, 0, 0),
        News::Aborted(cause) => with_cause(navlocks_event_kind::Aborted, cause),
        News::Lost(cause) => with_cause(navlocks_event_kind::Lost, cause),
        News::Contended => (navlocks_event_kind::Contended, 0, 0),
        // For subscribers, of which a host in C has none.
        News::Requested | News::Downgraded(_) | News::Released | News::Withdrawn | News::Events => {
            return None;
        }
    };
    let (client, number) = (mail.member.to_bits(), mail.number);
    Some(navlocks_event { kind, client, number, value, thief })
}

fn with_cause(
    kind: navlocks_event_kind,
    cause: Option<LossCause>,
) -> (navlocks_event_kind, u64, u64) {
    let (value, thief) = match cause {
        Some(LossCause::Stolen { by }) => (NAVLOCKS_CAUSE_STOLEN, by.serial()),
        Some(LossCause::ForceReleased) => (NAVLOCKS_CAUSE_FORCE_RELEASED, 0),
        Some(LossCause::HeldTooLong) => (NAVLOCKS_CAUSE_HELD_TOO_LONG, 0),
        Some(LossCause::Evicted) => (NAVLOCKS_CAUSE_EVICTED, 0),
        Some(LossCause::Suspended) => (NAVLOCKS_CAUSE_SUSPENDED, 0),
        None => (NAVLOCKS_CAUSE_CLIENT_ENDED, 0),
    };
    (kind, value, thief)
}
