//! The embedding kit: a host beside the space that it is made of.

use std::hint::black_box;

use navlocks_core::kit::{
    Address, Embedder, Host, HostSink, Limits, Member, Notes, Notice, Sink, Space,
};
use navlocks_core::{ClientId, DeadlockPolicy, HashKey, LockManager, Request, RequestId};

use crate::harness::{Round, time_per_op};
use crate::workload::HOT;

/// The least work of an embedder with each notice: it reads the request and the event.
struct Reader;

struct Plain;

impl Embedder for Plain {
    type Note = u64;
    type Time = u64;
    type Tag = ();
}

impl Sink<Plain> for Reader {
    #[inline]
    fn now(&self) -> u64 {
        0
    }

    #[inline]
    fn notify(&mut self, id: RequestId, notes: &mut Notes<Plain>, notice: &Notice<'_, u64>) {
        black_box((notes.get(id).copied(), notice));
    }
}

impl HostSink<u64, ()> for Reader {
    #[inline]
    fn now(&self) -> u64 {
        0
    }

    #[inline]
    fn notify(&mut self, to: Address, notice: &Notice<'_, u64>) {
        black_box((to, notice));
    }
}

const KEY: HashKey = HashKey::from_bytes(*b"sixteen bytes ok");

/// Request and release of one name through a host, under numbers of the caller.
pub(super) fn host(operations: usize) -> Round {
    let mut host: Host<&str, u64, ()> = Host::new(KEY, Limits::default(), DeadlockPolicy::Ignore);
    let group = host.add_group();
    let Ok(member): Result<Member, _> = host.open(group, "partition") else {
        unreachable!("the group is known")
    };
    let mut number = 0;
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                number += 1;
                let request = Request::exclusive(black_box(HOT));
                let _ = black_box(host.request(member, number, &request, None, &mut Reader));
                host.release(member, number, &mut Reader);
            }
        })]
    })
}

/// The same through a space, under its ids.
pub(super) fn space(operations: usize) -> Round {
    let mut space: Space<Plain> = Space::new(LockManager::new(KEY), DeadlockPolicy::Ignore);
    let client: ClientId = space.add_client();
    let mut number = 0;
    Box::new(move || {
        vec![time_per_op(operations, || {
            for _ in 0..operations {
                number += 1;
                let request = Request::exclusive(black_box(HOT));
                let made = space.request(client, &request, (number, None), &mut Reader);
                if let Ok((id, _)) = black_box(made) {
                    space.release(id, &mut Reader);
                }
            }
        })]
    })
}
