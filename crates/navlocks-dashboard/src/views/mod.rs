//! Views: what a dashboard shows. Each is an answer to one question.

mod brief;
mod clients;
mod name;
mod rings;
mod survey;
mod time;
mod tree;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use navlocks_server::inspect::{Inspector, PartitionKey, Viewer};
use navlocks_wire::{Fault, FaultCode};

use crate::history::{History, Recorded};
use crate::recording::Histories;
use crate::shown::{self, Shown};
use crate::view::{self, Space, View};
use brief::age;
pub(crate) use brief::entry;
use rings::Log;
pub(crate) use survey::Survey;
use survey::Wanted;

/// The most events of an answer.
const EVENTS_MAX: usize = 500;

/// The memory of all views: histories, and the last deadlocks.
#[derive(Debug, Default)]
pub(crate) struct Views {
    pub(crate) histories: Rc<Histories>,
    log: RefCell<Log>,
}

impl Views {
    /// Notes that a page asks, and begins a recording if there is none.
    pub(crate) fn begin_recording(&self, service: &Inspector, now: Instant) {
        if self.histories.begin(now) {
            service.begin_recording(now);
        }
    }

    /// Returns the answer to a question, or none if there is more to do.
    pub(crate) fn work(
        &self,
        service: &Inspector,
        viewer: &Viewer,
        view: &mut View,
        survey: &mut Option<Survey>,
        now: Instant,
    ) -> Option<Result<Shown, Fault>> {
        Some(Ok(match view {
            View::Overview(filter) => Shown::Overview(service.look(|inspect| {
                let survey = survey.get_or_insert_with(|| {
                    Survey::new(filter.clone(), inspect.keys_visible_to(viewer), now)
                });
                survey.step(inspect, now)
            })?),
            View::Queue(of) => {
                Shown::Queue(service.look(|inspect| name::queue(inspect, viewer, of, now)))
            }
            View::Tree(filter) => Shown::Tree(tree(service, viewer, filter, now)),
            View::Deadlocks => Shown::Deadlocks(self.deadlocks(service, viewer, now)),
            View::Clients(filter) => {
                let filter = std::mem::take(filter);
                Shown::Clients(service.look(|inspect| clients::page(inspect, viewer, filter, now)))
            }
            View::Time(of) => Shown::Time(Box::new(self.time(service, viewer, of, now))),
            View::Events(of) => Shown::Events(self.events(viewer, of, now)),
            View::Service => Shown::Service(self.service(service, viewer, now)),
            // Done when it was asked.
            View::Act(_) => return Some(Err(Fault::new(FaultCode::Internal, "an action waits"))),
        }))
    }

    fn service(&self, service: &Inspector, viewer: &Viewer, now: Instant) -> shown::ServiceInfo {
        let (slots, owned, recovering) = service.look(|inspect| inspect.slots());
        let node = |address| shown::ServiceNode { address, slots, owned, recovering };
        shown::ServiceInfo {
            service: concat!("navlocks ", env!("CARGO_PKG_VERSION")).into(),
            all: viewer.tenant.is_none(),
            acts: viewer.acts,
            author: viewer.author.to_string(),
            recorded_ms: self.histories.begun().map_or(0, |begun| age(begun, now)),
            node: service.node().map(node),
        }
    }

    /// Looks for deadlocks in some partitions, and notes those that are new or over. Returns the
    /// partitions with too many requests.
    pub(crate) fn look_for_deadlocks(
        &self,
        service: &Inspector,
        wanted: &dyn Fn(&PartitionKey) -> bool,
        now: Instant,
    ) -> Vec<Space> {
        let mut skipped = Vec::new();
        let mut left = service.limits().deadlock_entries_max;
        let mut log = self.log.borrow_mut();
        service.look(|inspect| {
            for partition in inspect.partitions().filter(|partition| wanted(partition.key())) {
                if log.look(partition, left, now) {
                    left = left.saturating_sub(partition.requests());
                } else {
                    skipped.push(partition.key().into());
                }
            }
            log.end(|key| inspect.find(key).is_some(), now);
        });
        skipped
    }

    fn deadlocks(&self, service: &Inspector, viewer: &Viewer, now: Instant) -> shown::Deadlocks {
        let visible = |key: &PartitionKey| viewer.sees(key.tenant());
        let skipped = self.look_for_deadlocks(service, &visible, now);
        shown::Deadlocks { rings: self.log.borrow().rings(visible, now), skipped }
    }

    fn time(
        &self,
        service: &Inspector,
        viewer: &Viewer,
        of: &view::TimeOf,
        now: Instant,
    ) -> shown::Time {
        let key = PartitionKey::from(&of.space);
        let history = self.histories.history(&key).filter(|_| viewer.sees(key.tenant()));
        let Some(history) = history else { return shown::Time::default() };
        let mut history = history.borrow_mut();
        service.look(|inspect| time::time(&mut history, inspect.find(&key), of, now))
    }

    fn events(&self, viewer: &Viewer, of: &view::EventsOf, now: Instant) -> shown::Events {
        let last = self.histories.board.last_event.get();
        let mut answer = shown::Events { last, ..shown::Events::default() };
        let wanted = Wanted::new(of.filter.clone());
        self.histories.for_each(|key, history: &History| {
            let space = Space::from(key);
            let other = of.filter.space.as_ref().is_some_and(|wanted| *wanted != space);
            if other || !viewer.sees(key.tenant()) {
                return;
            }
            answer.missed |= of.after > 0 && history.dropped_event > of.after;
            let new = history.events.iter().rev().take_while(|event| event.number > of.after);
            let wanted = new.filter(|event| event.is_wanted(&wanted)).take(EVENTS_MAX);
            answer.events.extend(wanted.map(|event| shown::Happened {
                number: event.number,
                ago_ms: age(event.at, now),
                space: space.clone(),
                what: event.what.to_owned(),
                entry: event.noted.as_ref().map(|noted| brief::noted(noted)),
                author: event.author.as_deref().map(str::to_owned),
            }));
        });
        answer.events.sort_by_key(|event| event.number);
        let surplus = answer.events.len().saturating_sub(EVENTS_MAX);
        answer.missed |= surplus > 0 && of.after > 0;
        answer.events.drain(..surplus);
        answer
    }
}

fn tree(service: &Inspector, viewer: &Viewer, filter: &view::Filter, now: Instant) -> shown::Tree {
    let mut left = service.limits().deadlock_entries_max;
    let mut tree = shown::Tree::default();
    service.look(|inspect| {
        for key in inspect.keys_visible_to(viewer) {
            let space = Space::from(&key);
            if filter.space.as_ref().is_some_and(|wanted| *wanted != space) {
                continue;
            }
            let Some(partition) = inspect.find(&key) else { continue };
            if partition.manager().pending_count() == 0 {
                continue;
            }
            match tree::roots(partition, left, now) {
                Some((roots, count)) => {
                    left = left.saturating_sub(partition.requests());
                    tree.roots.extend(roots);
                    tree.count += count;
                }
                None => tree.skipped.push(space),
            }
        }
    });
    tree.roots.sort_by_key(|root| std::cmp::Reverse(root.behind));
    tree
}

impl Recorded {
    fn is_wanted(&self, wanted: &Wanted) -> bool {
        let Some(noted) = &self.noted else { return true };
        wanted.wants_client(noted.client, noted.pid)
            && wanted.wants_mode(noted.mode)
            && wanted.wants_tag(noted.tag.as_ref())
            && noted.scope.names().iter().any(|name| wanted.wants_name(name))
    }
}
