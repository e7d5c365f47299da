//! Views: what a dashboard shows. Each question waits for its turn, and a surveyor answers them one
//! by one, in steps, so that a page costs the service a bounded part of its time.

mod acting;
mod brief;
mod clients;
mod history;
mod name;
mod rings;
mod survey;
mod time;
mod tree;

use std::cell::RefMut;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_wire::{self as wire, Answer, Fault, FaultCode, Reply, Shown, View};
use tokio::sync::Notify;

use crate::hub::partitions::PartitionKey;
use crate::hub::{Frame, Hub, Peer, Slots};
use brief::age;
use history::Board;
pub(crate) use history::{History, Noted};
use rings::Log;
use survey::{Survey, Wanted};

/// The most questions of one session, and of one tenant, that wait for their answers.
const JOBS_PER_SESSION_MAX: usize = 8;
const JOBS_PER_TENANT_MAX: usize = 64;

/// The most histories of partitions that are gone, in all and of one tenant.
const KEPT_MAX: usize = 64;
const KEPT_PER_TENANT_MAX: usize = 8;

/// A recording that no dashboard asked about for so long ends.
const UNASKED_MAX: Duration = Duration::from_secs(600);

/// The most events of an answer.
const EVENTS_MAX: usize = 500;

/// The state of all dashboards. All hubs of a service share it.
#[derive(Debug, Default)]
pub(crate) struct Views {
    jobs: VecDeque<Job>,
    board: Rc<Board>,
    log: Log,
    recording: Option<Recording>,
}

/// A question that waits for its answer.
#[derive(Debug)]
struct Job {
    session: u32,
    id: u64,
    peer: Rc<Peer>,
    view: View,
    survey: Option<Survey>,
}

/// The recording of what happens, from when a dashboard asked first.
#[derive(Debug)]
struct Recording {
    begun: Instant,
    /// When a dashboard last asked.
    asked: Instant,
    /// True if it goes on while no dashboard asks.
    always: bool,
    /// The histories of partitions that are gone.
    kept: VecDeque<(PartitionKey, Box<History>)>,
}

impl Views {
    /// Returns what is told when there is something to do.
    pub(crate) fn wake(&self) -> Rc<Notify> {
        self.board.wake.clone()
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Returns the history of a new partition, if there is a recording.
    pub(crate) fn begin_history(
        &mut self,
        key: &PartitionKey,
        now: Instant,
    ) -> Option<Box<History>> {
        let recording = self.recording.as_mut()?;
        let kept = recording.kept.iter().position(|(kept, _)| kept == key);
        if let Some((_, history)) = kept.and_then(|kept| recording.kept.remove(kept)) {
            return Some(history);
        }
        Some(Box::new(History::new(self.board.clone(), now)))
    }

    /// Keeps the history of a partition that is gone.
    pub(crate) fn keep_history(
        &mut self,
        key: PartitionKey,
        mut history: Box<History>,
        now: Instant,
    ) {
        let Some(Recording { kept, .. }) = &mut self.recording else { return };
        history.sample(0, 0, now);
        let of_tenant = |(other, _): &(PartitionKey, _)| other.is_of_tenant_of(&key);
        let crowded = kept.iter().filter(|it| of_tenant(it)).count() >= KEPT_PER_TENANT_MAX;
        if crowded && let Some(oldest) = kept.iter().position(of_tenant) {
            kept.remove(oldest);
        } else if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((key, history));
    }
}

impl Hub {
    fn views(&self) -> RefMut<'_, Views> {
        self.common.views.borrow_mut()
    }

    /// Records from now on, whether or not a dashboard asks.
    pub(crate) fn record_always(&mut self, now: Instant) {
        self.begin_recording(now);
        if let Some(recording) = &mut self.views().recording {
            recording.always = true;
        }
    }

    fn begin_recording(&mut self, now: Instant) {
        if let Some(recording) = &mut self.views().recording {
            recording.asked = now;
            return;
        }
        let kept = VecDeque::new();
        self.views().recording = Some(Recording { begun: now, asked: now, always: false, kept });
        self.within_each_hub(|hub| {
            for index in hub.partitions.indices() {
                let key = hub.partitions[index].key.clone();
                let history = hub.views().begin_history(&key, now);
                if let Some(history) = history {
                    hub.partitions[index].record(history, now);
                }
            }
        });
    }

    /// Ends a recording that no dashboard asks about any more.
    pub(crate) fn check_recording(&mut self, now: Instant) {
        let over = |recording: &Recording| {
            !recording.always && now.saturating_duration_since(recording.asked) > UNASKED_MAX
        };
        let is_over = self.views().recording.as_ref().is_some_and(over);
        if is_over {
            self.views().recording = None;
            self.within_each_hub(|hub| {
                for index in hub.partitions.indices() {
                    hub.partitions[index].end_recording();
                }
            });
        }
    }

    /// Ends the histories of a slot that this node serves no more. Its locks live on elsewhere, so
    /// their end here is no event.
    pub(crate) fn keep_histories(&mut self, now: Instant) {
        for index in self.partitions.indices() {
            let partition = &mut self.partitions[index];
            if let Some(mut history) = partition.history.take() {
                let key = partition.key.clone();
                history.leave(now);
                self.views().keep_history(key, history, now);
            }
        }
    }

    /// Takes a question of a dashboard. An action is done at once; other questions wait for their
    /// turn, and are answered later.
    pub(crate) fn ask_view(
        &mut self,
        session: u32,
        id: u64,
        view: View,
        now: Instant,
    ) -> Option<Result<Reply, Fault>> {
        let peer = self.sessions.get(session)?.peer.clone();
        if peer.viewing.is_none() {
            let text = "only a dashboard asks this: connect at /dashboard";
            return Some(Err(Fault::new(FaultCode::Unauthorized, text)));
        }
        self.begin_recording(now);
        if let View::Act(act) = &view {
            let acted = self.act(&peer, act, now);
            return Some(acted.map(|acted| Reply::View(Shown::Acted(acted))));
        }
        let mut views = self.views();
        let jobs = &views.jobs;
        let own = jobs.iter().filter(|job| job.session == session).count();
        let of_tenant = jobs.iter().filter(|job| job.peer.tenant == peer.tenant).count();
        if own >= JOBS_PER_SESSION_MAX || of_tenant >= JOBS_PER_TENANT_MAX {
            let text = "too many questions of dashboards wait for their answers: ask less often";
            return Some(Err(Fault::new(FaultCode::Limit, text)));
        }
        views.jobs.push_back(Job { session, id, peer, view, survey: None });
        views.board.wake.notify_one();
        None
    }

    /// Works on the first question for a moment. Returns false if there is nothing to do.
    pub fn step_views(&mut self, now: Instant) -> bool {
        let first = self.views().jobs.pop_front();
        let Some(mut job) = first else {
            let looks = self.views().board.look.replace(false);
            if looks {
                self.look_for_deadlocks(&|_| true, now);
                return true;
            }
            return false;
        };
        // Its page may be gone.
        if self.sessions.get(job.session).is_none() {
            return true;
        }
        match self.work(&mut job, now) {
            Some(reply) => {
                let reply = reply.map_or_else(Reply::Refused, Reply::View);
                self.answer_view(job.session, job.id, &reply, now);
            }
            None => self.views().jobs.push_front(job),
        }
        true
    }

    fn answer_view(&mut self, session: u32, id: u64, reply: &Reply, now: Instant) {
        let max = self.limits.answer_bytes_max;
        let text = wire::write_within(reply, max).unwrap_or_else(|| {
            let text = format!("the answer has more than {max} bytes, which is the limit");
            wire::write(&Reply::Refused(Fault::new(FaultCode::Limit, text)))
        });
        let frame = Frame::own(format!("{}{text}{}", Answer::head(id), Answer::TAIL));
        self.sessions.say_frame(session, frame);
        self.settle(now);
    }

    /// Returns the answer to a question, or none if there is more to do.
    fn work(&mut self, job: &mut Job, now: Instant) -> Option<Result<Shown, Fault>> {
        let Job { peer, view, survey, session, .. } = job;
        Some(Ok(match view {
            View::Overview(filter) => Shown::Overview(self.look(|sight| {
                let survey = survey.get_or_insert_with(|| {
                    Survey::new(filter.clone(), sight.keys_visible_to(peer), now)
                });
                survey.step(sight, now)
            })?),
            View::Queue(of) => Shown::Queue(self.view_queue(peer, of, now)),
            View::Tree(filter) => Shown::Tree(self.view_tree(peer, filter, now)),
            View::Deadlocks => Shown::Deadlocks(self.view_deadlocks(peer, now)),
            View::Clients(filter) => {
                let filter = std::mem::take(filter);
                Shown::Clients(self.look(|sight| sight.clients(peer, filter, now)))
            }
            View::Time(of) => Shown::Time(Box::new(self.view_time(peer, of, now))),
            View::Events(of) => Shown::Events(self.view_events(peer, of, now)),
            View::Service => Shown::Service(self.view_service(*session, peer, now)),
            // Done when it was asked.
            View::Act(_) => return Some(Err(Fault::new(FaultCode::Internal, "an action waits"))),
        }))
    }

    fn view_service(&self, session: u32, peer: &Peer, now: Instant) -> wire::ServiceInfo {
        let viewing = peer.viewing.as_ref();
        let node =
            |slots: Rc<Slots>| self.look(|sight| sight.node(slots.membership.borrow().address()));
        wire::ServiceInfo {
            all: viewing.is_some_and(|viewing| viewing.all),
            acts: viewing.is_some_and(|viewing| viewing.acts),
            author: viewing.map(|viewing| viewing.author.to_string()).unwrap_or_default(),
            session,
            recorded_ms: self.views().recording.as_ref().map_or(0, |it| age(it.begun, now)),
            node: self.common.slots.upgrade().map(node),
        }
    }

    fn view_tree(&self, peer: &Peer, filter: &wire::Filter, now: Instant) -> wire::Tree {
        let mut left = self.limits.deadlock_entries_max;
        let mut tree = wire::Tree::default();
        self.look(|sight| {
            for key in sight.keys_visible_to(peer) {
                let space = key.space();
                if filter.space.as_ref().is_some_and(|wanted| *wanted != space) {
                    continue;
                }
                let Some(partition) = sight.find(&key) else { continue };
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

    /// Looks for deadlocks in some partitions, and notes those that are new or over. Returns the
    /// partitions with too many requests.
    fn look_for_deadlocks(
        &self,
        wanted: &dyn Fn(&PartitionKey) -> bool,
        now: Instant,
    ) -> Vec<wire::Space> {
        let mut skipped = Vec::new();
        let mut left = self.limits.deadlock_entries_max;
        let mut views = self.views();
        self.look(|sight| {
            for partition in sight.partitions().filter(|partition| wanted(&partition.key)) {
                if views.log.look(partition, left, now) {
                    left = left.saturating_sub(partition.requests());
                } else {
                    skipped.push(partition.key.space());
                }
            }
            views.log.end(|key| sight.find(key).is_some(), now);
        });
        skipped
    }

    fn view_deadlocks(&self, peer: &Peer, now: Instant) -> wire::Deadlocks {
        let visible = |key: &PartitionKey| key.is_visible_to(peer);
        let skipped = self.look_for_deadlocks(&visible, now);
        wire::Deadlocks { rings: self.views().log.rings(visible, now), skipped }
    }

    fn view_time(&mut self, peer: &Peer, of: &wire::TimeOf, now: Instant) -> wire::Time {
        let key = PartitionKey::of_space(&of.space);
        if !key.is_visible_to(peer) {
            return wire::Time::default();
        }
        let living = self.within_hub_of(&key, |hub| {
            let index = hub.partitions.find(&key)?;
            let partition = &mut hub.partitions[index];
            let Some(mut history) = partition.history.take() else {
                return Some(wire::Time::default());
            };
            let answer = time::time(&mut history, Some(partition), of, now);
            partition.history = Some(history);
            Some(answer)
        });
        if let Some(answer) = living.flatten() {
            return answer;
        }
        let mut views = self.views();
        let kept = views.recording.as_mut().map(|recording| &mut recording.kept);
        let kept = kept.and_then(|kept| kept.iter_mut().find(|(other, _)| *other == key));
        kept.map(|(_, history)| time::time(history, None, of, now)).unwrap_or_default()
    }

    fn view_events(&self, peer: &Peer, of: &wire::EventsOf, now: Instant) -> wire::Events {
        let views = self.views();
        let last = views.board.last_event.get();
        let mut answer = wire::Events { last, ..wire::Events::default() };
        let wanted = Wanted::new(of.filter.clone());
        let mut add = |key: &PartitionKey, history: &History| {
            let space = key.space();
            let other = of.filter.space.as_ref().is_some_and(|wanted| *wanted != space);
            if other || !key.is_visible_to(peer) {
                return;
            }
            answer.missed |= of.after > 0 && history.dropped_event > of.after;
            let new = history.events.iter().rev().take_while(|event| event.number > of.after);
            let wanted = new.filter(|event| event.is_wanted(&wanted)).take(EVENTS_MAX);
            answer.events.extend(wanted.map(|event| wire::Happened {
                number: event.number,
                ago_ms: age(event.at, now),
                space: space.clone(),
                what: event.what.to_owned(),
                entry: event.noted.as_ref().map(|noted| noted.entry()),
                author: event.author.as_deref().map(str::to_owned),
            }));
        };
        self.look(|sight| {
            let recorded =
                sight.partitions().filter_map(|it| Some((&it.key, it.history.as_ref()?)));
            recorded.for_each(|(key, history)| add(key, history));
        });
        let kept = views.recording.iter().flat_map(|recording| &recording.kept);
        kept.for_each(|(key, history)| add(key, history));
        answer.events.sort_by_key(|event| event.number);
        let surplus = answer.events.len().saturating_sub(EVENTS_MAX);
        answer.missed |= surplus > 0 && of.after > 0;
        answer.events.drain(..surplus);
        answer
    }
}

impl history::Recorded {
    fn is_wanted(&self, wanted: &Wanted) -> bool {
        let Some(noted) = &self.noted else { return true };
        wanted.wants_client(noted.client, noted.pid)
            && wanted.wants_mode(noted.mode)
            && wanted.wants_tag(noted.tag.as_ref())
            && noted.scope.names().iter().any(|name| wanted.wants_name(name))
    }
}
