//! Random histories through the C functions: the same grants, queues and events as the model.

use std::ptr::null;

use navlocks_capi::*;
use navlocks_tests::history::{NAMES, Witness, play};
use navlocks_tests::model::Scopes;
use navlocks_tests::model::words::{
    Answer, Decided, Event, Info, Input, LossCause, Mode, Policy, Refusal, Scope, Snapshot, Wait,
};

use crate::histories::arbitrary::{any_ops, check, histories};

/// A host, with a group for all its clients, so that their events have one queue.
struct Host {
    host: u64,
    group: u64,
    clients: Vec<u64>,
    closed: Vec<u64>,
    /// The client of each request, whose number is its index.
    requests: Vec<u64>,
    ids: Vec<u64>,
    /// Events that the model has not polled yet.
    events: Vec<navlocks_event>,
}

impl Host {
    fn new() -> Self {
        let (mut host, mut group) = (0, 0);
        assert_eq!(navlocks_host_new([7; 16].as_ptr(), &mut host), navlocks_status::Ok);
        assert_eq!(navlocks_group_new(host, &mut group), navlocks_status::Ok);
        let (clients, closed, requests) = (Vec::new(), Vec::new(), Vec::new());
        Self { host, group, clients, closed, requests, ids: Vec::new(), events: Vec::new() }
    }

    fn apply(&mut self, input: &Input) -> Answer {
        let host = self.host;
        match *input {
            Input::Join => {
                let mut client = 0;
                let opened =
                    navlocks_client_open(host, self.group, text("p"), text("c"), &mut client);
                assert_eq!(opened, navlocks_status::Ok);
                self.clients.push(client);
                Answer::Joined(self.clients.len() - 1)
            }
            Input::Request { client, ref scope, mode, wait } => {
                let (client, number) = (self.clients[client], self.requests.len());
                let letters: Vec<String> = scope.iter().map(char::to_string).collect();
                let names: Vec<navlocks_text> = letters.iter().map(|name| text(name)).collect();
                let wait = wait_number(wait);
                let mut id = 0;
                let (data, count) = (names.as_ptr(), names.len());
                let status = navlocks_request(
                    host,
                    client,
                    number as u64,
                    data,
                    count,
                    limit(mode),
                    wait,
                    null(),
                    &mut id,
                );
                if !matches!(
                    status,
                    navlocks_status::Ok | navlocks_status::Pending | navlocks_status::Unavailable
                ) {
                    return Answer::Refused(match status {
                        navlocks_status::Unknown => Refusal::UnknownClient,
                        _ => Refusal::ClientSuspended,
                    });
                }
                self.requests.push(client);
                self.ids.push(id);
                self.take_events();
                let own = |event: &navlocks_event| event.number == number as u64;
                // The outcome of the request itself is an event in C, and an answer of the model.
                let decided = match status {
                    navlocks_status::Pending => Decided::Pending,
                    _ => {
                        let place = self.events.iter().position(own).expect("an event");
                        let event = self.events.remove(place);
                        match event.kind {
                            navlocks_event_kind::Granted => Decided::Granted { token: event.value },
                            _ => Decided::Unavailable,
                        }
                    }
                };
                Answer::Made(number, decided)
            }
            Input::Release(number) => {
                effect(navlocks_release(host, self.requests[number], number as u64))
            }
            Input::Downgrade(number, mode) => {
                let client = self.requests[number];
                effect(navlocks_downgrade(host, client, number as u64, limit(mode)))
            }
            Input::Expire(number) => {
                effect(navlocks_expire(host, self.requests[number], number as u64))
            }
            Input::Abort(number) => {
                effect(navlocks_abort(host, self.requests[number], number as u64))
            }
            Input::Terminate(client) => {
                let client = self.clients[client];
                self.take_events();
                self.events.retain(|event| event.client != client);
                self.closed.push(client);
                effect(navlocks_client_close(host, client))
            }
            Input::ForceRelease(name) => {
                let Some(&client) =
                    self.clients.iter().find(|client| !self.closed.contains(client))
                else {
                    return Answer::Count(0);
                };
                let (letter, mut count) = (name.to_string(), 0);
                let done = navlocks_force_release(host, client, text(&letter), &mut count);
                assert_eq!(done, navlocks_status::Ok);
                Answer::Count(count)
            }
            Input::Suspend(client, policy) => {
                let policy = match policy {
                    Policy::EvictOnContention => NAVLOCKS_EVICT_ON_CONTENTION,
                    Policy::ReleaseAtOnce => NAVLOCKS_RELEASE_AT_ONCE,
                };
                effect(navlocks_suspend(host, self.clients[client], policy))
            }
            Input::Resume(client) => effect(navlocks_resume(host, self.clients[client])),
            Input::Query => Answer::Snapshot(self.snapshot()),
            Input::AdvanceToken(at_least) => {
                assert_eq!(navlocks_advance_token(host, at_least), navlocks_status::Ok);
                Answer::Nothing
            }
            Input::Poll => Answer::Nothing,
        }
    }

    fn take_events(&mut self) {
        let mut event = navlocks_event {
            kind: navlocks_event_kind::Granted,
            client: 0,
            number: 0,
            value: 0,
            thief: 0,
        };
        while navlocks_poll_event(self.host, self.group, &mut event) == navlocks_status::Ok {
            self.events.push(event);
        }
    }

    /// Takes the event that the model polled, or objects that there is none.
    fn take_event(&mut self, expected: &Event) -> Result<(), String> {
        self.take_events();
        let (request, client, kind, value) = match *expected {
            Event::Granted { request, client, token } => {
                (request, client, navlocks_event_kind::Granted, token)
            }
            Event::Lost { request, client, cause } => {
                (request, client, navlocks_event_kind::Lost, cause_number(cause))
            }
            Event::Aborted { request, client, cause } => {
                (request, client, navlocks_event_kind::Aborted, cause_number(cause))
            }
            // The losses of an evicted client follow when it is resumed.
            Event::Evicted { .. } => return Ok(()),
        };
        let client = self.clients[client];
        let place = self.events.iter().position(|event| {
            (event.number, event.client, event.kind, event.value)
                == (request as u64, client, kind, value)
        });
        let place = place.ok_or_else(|| format!("no event in C for: {expected}"))?;
        let event = self.events.remove(place);
        match *expected {
            Event::Lost { cause: LossCause::Stolen { by }, .. } if event.thief != self.ids[by] => {
                Err(format!("another thief in C: {expected}"))
            }
            _ => Ok(()),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let (mut query, mut held, mut pending) = (0, 0, 0);
        let open = self.clients.iter().find(|&&client| {
            let asked = navlocks_query(self.host, client, &mut query, &mut held, &mut pending);
            asked == navlocks_status::Ok
        });
        if open.is_none() {
            return Snapshot::default();
        }
        let rows: Vec<Info> = (0..held + pending).map(|row| self.row(query, row)).collect();
        assert_eq!(navlocks_query_end(query), navlocks_status::Ok);
        let (held, pending) = rows.split_at(held);
        Snapshot { held: held.to_vec(), pending: pending.to_vec() }
    }

    fn row(&self, query: u64, row: usize) -> Info {
        let mut lock =
            navlocks_lock { client: 0, number: 0, id: 0, token: 0, since: 0, limit: 0, names: 0 };
        assert_eq!(navlocks_query_row(query, row, &mut lock), navlocks_status::Ok);
        let name = |index| {
            let (mut letter, mut length) = ([0_u8; 4], 0);
            let (kind, buffer) = (NAVLOCKS_TEXT_NAME, letter.as_mut_ptr().cast());
            let read = navlocks_query_text(query, row, kind, index, 0, buffer, 4, &mut length);
            assert_eq!((read, length), (navlocks_status::Ok, 1));
            char::from(letter[0])
        };
        let scope: Scope = (0..lock.names as usize).map(name).collect();
        let client = self.clients.iter().position(|&known| known == lock.client);
        Info {
            request: lock.number as usize,
            client: client.expect("the client joined"),
            scope,
            mode: match lock.limit {
                NAVLOCKS_SHARED => Mode::Shared,
                NAVLOCKS_EXCLUSIVE => Mode::Exclusive,
                limit => Mode::Limited(limit as u8),
            },
            token: (lock.token != 0).then_some(lock.token),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        navlocks_host_end(self.host);
    }
}

impl Witness for Host {
    fn see(&mut self, input: &Input, answer: &Answer, _: &Scopes) -> Result<(), String> {
        if let Answer::Event(event) = answer {
            return event.as_ref().map_or(Ok(()), |event| self.take_event(event));
        }
        let own = self.apply(input);
        // Both have one status in C.
        if let (
            Answer::Refused(Refusal::ExclusiveOvertake),
            Answer::Refused(Refusal::ClientSuspended),
        ) = (answer, &own)
        {
            return Ok(());
        }
        if own == *answer { Ok(()) } else { Err(format!("in C: {own:?}, not {answer:?}")) }
    }

    fn settle(&mut self, _: &Scopes) -> Result<(), String> {
        Ok(())
    }
}

fn text(utf8: &str) -> navlocks_text {
    let data = utf8.as_ptr().cast();
    navlocks_text { data, length: utf8.len(), encoding: NAVLOCKS_UTF8 }
}

fn effect(status: navlocks_status) -> Answer {
    Answer::Effect(status == navlocks_status::Ok)
}

fn limit(mode: Mode) -> u32 {
    match mode {
        Mode::Shared => NAVLOCKS_SHARED,
        Mode::Exclusive => NAVLOCKS_EXCLUSIVE,
        Mode::Limited(limit) => limit.into(),
    }
}

fn wait_number(wait: Wait) -> u32 {
    match wait {
        Wait::Queue => NAVLOCKS_WAIT_QUEUE,
        Wait::IfAvailable => NAVLOCKS_WAIT_IF_AVAILABLE,
        Wait::Steal => NAVLOCKS_WAIT_STEAL,
        Wait::StealAll => NAVLOCKS_WAIT_STEAL_ALL,
        Wait::Overtake => NAVLOCKS_WAIT_OVERTAKE,
    }
}

fn cause_number(cause: LossCause) -> u64 {
    match cause {
        LossCause::Stolen { .. } => NAVLOCKS_CAUSE_STOLEN,
        LossCause::ForceReleased => NAVLOCKS_CAUSE_FORCE_RELEASED,
        LossCause::HeldTooLong => NAVLOCKS_CAUSE_HELD_TOO_LONG,
        LossCause::Evicted => NAVLOCKS_CAUSE_EVICTED,
        LossCause::Suspended => NAVLOCKS_CAUSE_SUSPENDED,
    }
}

#[test]
fn histories_through_c_follow_the_model() {
    assert!(NAMES.iter().all(char::is_ascii));
    check("histories_through_c_follow_the_model", histories(4), any_ops(1..=40), |ops| {
        play(ops, &mut [&mut Host::new()])
    });
}
