//! Queries: a snapshot behind a handle, row by row.

#![allow(unsafe_code, reason = "a name for C is an unsafe attribute")]
#![allow(clippy::not_unsafe_ptr_arg_deref, reason = "C has no unsafe functions; see memory.rs")]

use std::ffi::c_void;
use std::sync::LazyLock;

use navlocks_core::kit::HostLock;
use navlocks_core::{FencingToken, Name};
use navlocks_threads::Report;

use crate::hosts::{Handles, Keep, client, host, status};
use crate::memory;
use crate::types::*;

static QUERIES: LazyLock<Handles<Report>> = LazyLock::new(Handles::new);

/// The text of a row: one of its names.
pub const NAVLOCKS_TEXT_NAME: u32 = 0;
/// The text of a row: the name of its client.
pub const NAVLOCKS_TEXT_CLIENT: u32 = 1;
/// The text of a row: its tag.
pub const NAVLOCKS_TEXT_TAG: u32 = 2;

/// Asks for all locks and requests in the partition of a client, in grant and queue order. `held`
/// and `pending` are how many rows there are; held ones come first. navlocks_query_end ends the
/// query.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_query(
    host_: u64,
    client_: u64,
    query: *mut u64,
    held: *mut usize,
    pending: *mut usize,
) -> navlocks_status {
    status(|| {
        let report = host(host_)?.query(client(client_)?, &mut Keep);
        let report = report.ok_or(navlocks_status::Unknown)?;
        memory::write(held, report.snapshot.held.len());
        memory::write(pending, report.snapshot.pending.len());
        memory::write(query, QUERIES.insert(report));
        Ok(navlocks_status::Ok)
    })
}

/// Ends a query.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_query_end(query: u64) -> navlocks_status {
    status(|| QUERIES.remove(query).map(|()| navlocks_status::Ok))
}

/// Reads a row of a query. Returns NAVLOCKS_STATUS_NOTHING if there is no such row.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_query_row(
    query: u64,
    row: usize,
    lock: *mut navlocks_lock,
) -> navlocks_status {
    status(|| {
        let report = QUERIES.get(query)?;
        let found = row_of(&report, row).ok_or(navlocks_status::Nothing)?;
        memory::write(
            lock,
            navlocks_lock {
                client: found.address.member.to_bits(),
                number: found.address.number,
                id: found.address.request.serial(),
                token: found.token.map_or(0, FencingToken::get),
                since: found.since,
                limit: found.mode.limit().unwrap_or(NAVLOCKS_SHARED),
                names: found.scope.names().len() as u32,
            },
        );
        Ok(navlocks_status::Ok)
    })
}

/// Copies a text of a row into a buffer of `capacity` units of the encoding, without a NUL.
/// `length` is that of the whole text. Unpaired surrogates become U+FFFD in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn navlocks_query_text(
    query: u64,
    row: usize,
    kind: u32,
    index: usize,
    encoding: u32,
    buffer: *mut c_void,
    capacity: usize,
    length: *mut usize,
) -> navlocks_status {
    status(|| {
        let report = QUERIES.get(query)?;
        let found = row_of(&report, row).ok_or(navlocks_status::Nothing)?;
        let text: Option<&Name> = match kind {
            NAVLOCKS_TEXT_NAME => found.scope.names().get(index),
            NAVLOCKS_TEXT_CLIENT => report.clients.get(&found.address.member),
            NAVLOCKS_TEXT_TAG => found.tag.as_ref(),
            _ => return Err(navlocks_status::Invalid),
        };
        let units: Vec<u16> = text.ok_or(navlocks_status::Nothing)?.encode_utf16().collect();
        match encoding {
            NAVLOCKS_UTF8 => {
                let text = String::from_utf16_lossy(&units);
                copy(text.as_bytes(), buffer.cast(), capacity, length)
            }
            NAVLOCKS_UTF16 if buffer.cast::<u16>().is_aligned() => {
                copy(&units, buffer.cast(), capacity, length)
            }
            _ => Err(navlocks_status::Invalid),
        }
    })
}

fn row_of(report: &Report, row: usize) -> Option<&HostLock<u64, Name>> {
    let snapshot = &report.snapshot;
    snapshot.held.iter().chain(&snapshot.pending).nth(row)
}

fn copy<T: Copy>(
    units: &[T],
    buffer: *mut T,
    capacity: usize,
    length: *mut usize,
) -> Result<navlocks_status, navlocks_status> {
    memory::write(length, units.len());
    let room = memory::buffer(buffer, capacity).get_mut(..units.len());
    room.ok_or(navlocks_status::TooSmall)?.copy_from_slice(units);
    Ok(navlocks_status::Ok)
}
