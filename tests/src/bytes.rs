//! Histories from arbitrary bytes, for the fuzzer.

use crate::history::{History, NAMES, Op, Which, Who};
use crate::model::words::{Mode, Policy, Scope, Wait};

/// Long enough for every event, short enough for a model that scans everything.
const OPS_MAX: usize = 48;

impl History {
    /// Reads three bytes an operation: its kind, the client or request, and the names. A rest of
    /// one or two bytes, and bytes beyond the longest history, are ignored.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (ops, _rest) = bytes.as_chunks();
        Self { ops: ops.iter().take(OPS_MAX).copied().map(op).collect() }
    }
}

fn op([what, who, on]: [u8; 3]) -> Op {
    let request = |wait| Op::Request { seat: who & 0x0f, scope: scope(on), mode: mode(who), wait };
    match what & 0x0f {
        0..=2 => request(Wait::Queue),
        3 => request(Wait::IfAvailable),
        4 => request(Wait::Steal),
        5 => request(Wait::StealAll),
        6 => request(Wait::Overtake),
        7 => Op::Release(which(who, on)),
        8 if who & 0x10 == 0 => Op::Release(which(who, on)),
        8 => Op::Downgrade(which(who, on), mode(who)),
        9 => Op::Abort(which(who, on)),
        10 => Op::Terminate(whom(who)),
        11 if who & 1 == 1 => Op::Expire(Which::Held(on)),
        11 => Op::ForceRelease(NAMES[usize::from(on) % NAMES.len()]),
        12 => Op::Suspend(
            whom(who),
            if on & 1 == 0 { Policy::EvictOnContention } else { Policy::ReleaseAtOnce },
        ),
        13 => Op::Resume(whom(who)),
        14 => Op::Query,
        _ => match who & 3 {
            0 => Op::Poll,
            1 => Op::Polling(true),
            2 => Op::Polling(false),
            _ => Op::AdvanceToken(on),
        },
    }
}

/// Reads a mode from the first two bits, and from the next two the number of a limit.
fn mode(who: u8) -> Mode {
    match who >> 6 {
        0 => Mode::Exclusive,
        1 => Mode::Limited(2 + (who >> 4 & 3)),
        _ => Mode::Shared,
    }
}

/// Reads a scope, one bit a name; a request always has at least one.
fn scope(on: u8) -> Scope {
    let mut names: Scope = NAMES
        .iter()
        .enumerate()
        .filter(|(index, _)| on >> index & 1 == 1)
        .map(|(_, &name)| name)
        .collect();
    if names.is_empty() {
        names.insert(NAMES[0]);
    }
    names
}

fn whom(who: u8) -> Who {
    match who >> 6 {
        0 | 1 => Who::Seat(who & 0x0f),
        2 => Who::Waiting(who & 0x0f),
        _ => Who::Asleep(who & 0x0f),
    }
}

fn which(how: u8, number: u8) -> Which {
    match how & 3 {
        0 | 1 => Which::Held(number),
        2 => Which::Pending(number),
        _ => Which::Ever(number),
    }
}
