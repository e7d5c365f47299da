//! A client: the machine that ships, with tasks that request, wait, check, hold, check again and
//! release, and record it all.

mod driver;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use navlocks_client::{
    Addresses, Begin, Event as Effect, LinkState, Machine, Moment as MachineMoment, Outcome, Over,
    QueryFailure, Settings,
};
use navlocks_core::{Mode, Name};
use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Line, Moment, RequestNo, Step, Wait, What, Who};
use navlocks_wire::{LocksOf, Question, Reply, RequestKey, ToService};

use crate::bug::{Bug, Seeded};
use crate::errands::{Errand, Errands};
use crate::events::Event;
use crate::services::LinkNo;
use crate::tally::Tally;

/// A lock may be held for so long beyond its maximum: a message is under way, a service is down.
pub(crate) const HOLD_SLACK: u64 = 1500;

/// The properties of a client.
#[derive(Clone)]
pub(crate) struct Traits {
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// True if the kernel tells its service when it dies.
    pub(crate) local: bool,
    pub(crate) addresses: String,
    pub(crate) partition: String,
    /// True if it has a further client in the same session.
    pub(crate) has_second: bool,
    pub(crate) lease: u64,
    pub(crate) tasks: Vec<Errands>,
    /// True if its steps are recorded.
    pub(crate) records: bool,
    pub(crate) bug: Seeded,
}

pub(crate) struct Client {
    pub(crate) traits: Traits,
    pub(crate) who: Who,
    dice: Dice,
    pub(crate) alive: bool,
    /// True if it is stopped; its messages wait until it continues.
    pub(crate) stopped: bool,
    pub(crate) backlog: VecDeque<Event>,
    /// How often it was stopped.
    pub(crate) stops: u32,
    /// Each request has the number of its task.
    machine: Machine<usize>,
    link: Option<LinkNo>,
    /// The machine waits for a socket.
    is_dialing: bool,
    /// When the machine is to be called again.
    beat: u64,
    /// How many sessions have begun or lapsed: a service may reuse their numbers, and a request
    /// that outlives a lapse has lost its place.
    sessions: u32,
    had_lease: bool,
    tasks: Vec<Task>,
    made: RequestNo,
    queries: BTreeMap<u64, Asked>,
    pub(crate) lines: Vec<Line>,
    pub(crate) tally: Tally,
    /// A lock that was held beyond its maximum.
    pub(crate) held_too_long: Option<String>,
    /// Names whose locks had a maximum hold, with its end.
    pub(crate) deadlines: Vec<(Arc<str>, u64)>,
    /// Names that were granted, with the times of request and grant.
    pub(crate) grants: Vec<(Arc<str>, u64, u64)>,
}

struct Task {
    state: State,
    errands: Errands,
    /// Tells a valid wakeup from an outdated one.
    turn: u32,
}

enum State {
    Idle,
    Waiting { asks: Asks, looks: u64 },
    Holding { asks: Asks, since: u64, until: u64 },
    Over,
}

#[derive(Clone)]
struct Asks {
    /// Its number in the record.
    number: RequestNo,
    /// Its number in the session.
    id: u64,
    /// When it was made.
    since: u64,
    errand: Errand,
}

/// A question, and the task that asks.
enum Asked {
    Query { task: usize, id: u64, since: u64, session: u32 },
    Force { task: usize, name: Name },
}

/// An action of a client.
#[derive(Default)]
pub(crate) struct Acts {
    /// A message, or the handshake.
    pub(crate) send: Vec<(LinkNo, Option<ToService>)>,
    /// The tasks to wake: when, which, and its turn.
    pub(crate) wake: Vec<(u64, usize, u32)>,
    pub(crate) close: Vec<LinkNo>,
    /// The node to which it connects, and when.
    pub(crate) dial: Option<(u64, usize)>,
    /// When the machine is to be called again.
    pub(crate) beat: Option<u64>,
}

/// Returns the time of the world as its machines count it.
fn at(now: u64) -> MachineMoment {
    MachineMoment::from_nanoseconds(now * 1_000_000)
}

impl Client {
    pub(crate) fn new(traits: Traits, number: u64, now: u64) -> Self {
        let mut dice = Dice::new(traits.seed, 1 + number);
        let addresses = Addresses::parse(&traits.addresses).expect("an address");
        let lease = Some(Duration::from_millis(traits.lease));
        let partition = traits.partition.clone();
        let settings = Settings { lease, partition, ..Settings::new(addresses, Begin::Persist) };
        let mut machine = Machine::new(settings, dice.roll(u64::MAX), at(now));
        if traits.has_second {
            let is_wrong = traits.bug.strikes(Bug::WrongPartition);
            machine.add_client(if is_wrong { "" } else { &traits.partition });
        }
        let task =
            |errands: &Errands| Task { state: State::Idle, errands: errands.clone(), turn: 0 };
        Self {
            who: Who::from(&*traits.name),
            dice,
            alive: true,
            stopped: false,
            backlog: VecDeque::new(),
            stops: 0,
            machine,
            link: None,
            is_dialing: false,
            beat: u64::MAX,
            sessions: 0,
            had_lease: false,
            tasks: traits.tasks.iter().map(task).collect(),
            made: 0,
            queries: BTreeMap::new(),
            lines: Vec::new(),
            tally: Tally::default(),
            held_too_long: None,
            deadlines: Vec::new(),
            grants: Vec::new(),
            traits,
        }
    }

    pub(crate) fn start(&mut self, now: u64) -> Acts {
        let mut acts = Acts::default();
        for task in 0..self.tasks.len() {
            let random = now + self.dice.roll(50);
            let first = self.tasks[task].errands.first_at().unwrap_or(random);
            self.sleep_until(task, first, &mut acts);
        }
        self.drive(now, &mut acts);
        acts
    }

    /// Ends the session.
    pub(crate) fn leave(&mut self, now: u64) -> Acts {
        self.input(now, Machine::leave)
    }

    /// Returns true if it has no more requests to make.
    pub(crate) fn is_done(&self) -> bool {
        let over = |task: &Task| {
            matches!(task.state, State::Idle | State::Over) && task.errands.is_empty()
        };
        self.tasks.iter().all(over)
    }

    /// Returns the link over which it was welcomed, if it is up.
    pub(crate) fn link(&self) -> Option<LinkNo> {
        self.link.filter(|_| *self.machine.link() == LinkState::Up)
    }

    fn write(&mut self, now: u64, number: RequestNo, step: Step) {
        if !self.traits.records {
            return;
        }
        let what = What::Request(number, step);
        self.lines.push(Line { at: Moment(now), who: self.who.clone(), what });
    }

    fn sleep(&mut self, task: usize, now: u64, longest: u64, acts: &mut Acts) {
        let at = now + self.dice.roll(longest);
        self.sleep_until(task, at, acts);
    }

    fn sleep_until(&mut self, task: usize, at: u64, acts: &mut Acts) {
        let turn = &mut self.tasks[task].turn;
        *turn += 1;
        acts.wake.push((at, task, *turn));
    }

    fn rest(&mut self, task: usize, now: u64, acts: &mut Acts) {
        self.tasks[task].state = State::Idle;
        match self.tasks[task].errands.first_at() {
            Some(at) => self.sleep_until(task, at.max(now), acts),
            None => self.sleep(task, now, 200, acts),
        }
    }

    /// Ends a wait of a task.
    fn end_wait(&mut self, task: usize, step: Step, now: u64, acts: &mut Acts) {
        if let State::Waiting { asks, .. } = &self.tasks[task].state {
            let number = asks.number;
            self.write(now, number, step);
            self.rest(task, now, acts);
        }
    }

    pub(crate) fn wake(&mut self, task: usize, turn: u32, now: u64) -> Acts {
        let mut acts = self.beat(now);
        if self.tasks[task].turn != turn {
            return acts;
        }
        match std::mem::replace(&mut self.tasks[task].state, State::Over) {
            State::Over => {}
            State::Idle if self.tasks[task].errands.is_empty() => {}
            State::Idle => self.ask(task, now, &mut acts),
            State::Waiting { asks, looks: 0 } if asks.errand.gives_up => {
                let timed = matches!(asks.errand.wait, Wait::AtMost(_));
                self.write(now, asks.number, if timed { Step::TimedOut } else { Step::Withdrawn });
                self.machine.abort(asks.id);
                self.rest(task, now, &mut acts);
            }
            State::Waiting { asks, looks } => {
                if looks > 0 {
                    self.query(task, asks.id, now);
                    self.sleep(task, now, 600, &mut acts);
                }
                let looks = looks.saturating_sub(1);
                self.tasks[task].state = State::Waiting { asks, looks };
            }
            State::Holding { asks, since, .. } if self.machine.loss(asks.id).is_some() => {
                self.lose(task, &asks, since, now, &mut acts);
            }
            State::Holding { asks, until, .. } if now >= until => {
                self.write(now, asks.number, Step::Releasing);
                let loss = self.machine.release(asks.id).and_then(|(loss, _)| loss);
                self.write(
                    now,
                    asks.number,
                    match loss {
                        Some(loss) => Step::Lost(format!("{loss:?}").into()),
                        None => Step::Released,
                    },
                );
                self.rest(task, now, &mut acts);
            }
            State::Holding { mut asks, since, until } => {
                self.write(now, asks.number, Step::Still);
                if asks.errand.shared_after.take_if(|after| now >= since + *after).is_some() {
                    self.machine.downgrade(asks.id, Mode::Shared);
                }
                let max = asks.errand.max_hold.map_or(u64::MAX, |max| since + max + HOLD_SLACK);
                if now > max {
                    let text = format!("{} holds #{} beyond its maximum", self.who, asks.number);
                    self.held_too_long = Some(text);
                }
                let next = until.min(now + self.dice.roll(self.tasks[task].errands.check_every()));
                self.tasks[task].state = State::Holding { asks, since, until };
                self.sleep_until(task, next.max(now + 1), &mut acts);
            }
        }
        self.drive(now, &mut acts);
        acts
    }

    fn lose(&mut self, task: usize, asks: &Asks, since: u64, now: u64, acts: &mut Acts) {
        let loss = self.machine.release(asks.id).and_then(|(loss, _)| loss);
        let expires = asks.errand.max_hold.map(|max| since + max.saturating_sub(HOLD_SLACK / 4));
        if expires.is_some_and(|at| now >= at) {
            // Its time is over.
            self.write(now, asks.number, Step::Released);
            return self.rest(task, now, acts);
        }
        self.tally.lose(loss.as_ref());
        self.write(now, asks.number, Step::Lost(format!("{loss:?}").into()));
        self.rest(task, now, acts);
    }

    fn query(&mut self, task: usize, id: u64, now: u64) {
        if let Ok(query) = self.machine.ask(0, Question::Locks(LocksOf::Partition), at(now)) {
            let asked = Asked::Query { task, id, since: now, session: self.sessions };
            self.queries.insert(query, asked);
        }
    }

    fn ask(&mut self, task: usize, now: u64, acts: &mut Acts) {
        let Some(mut errand) = self.tasks[task].errands.next(&mut self.dice) else { return };
        self.made += 1;
        let number = self.made;
        let names = errand.names.iter().map(|name| self.record_name(name)).collect();
        self.write(now, number, Step::Asked { names, mode: errand.mode, wait: errand.wait });
        errand.client &= u64::from(self.traits.has_second);
        let made = match errand.wait {
            Wait::Force => self.force(task, Name::from(&*errand.names[0]), now).map(|()| 0),
            _ => self
                .machine
                .request(errand.request(), task, at(now))
                .map_err(|it| format!("{it:?}")),
        };
        let id = match made {
            Ok(id) => id,
            // It is beyond the limits of the service.
            Err(text) => {
                self.write(now, number, Step::Failed(text.into()));
                return self.rest(task, now, acts);
            }
        };
        let (looks, gives_up) = (errand.looks, errand.gives_up);
        self.tasks[task].state =
            State::Waiting { asks: Asks { number, id, since: now, errand }, looks };
        if looks > 0 || gives_up {
            self.sleep(task, now, 600, acts);
        }
    }

    /// Asks to take a lock from its holders.
    fn force(&mut self, task: usize, name: Name, now: u64) -> Result<(), String> {
        let asked = self.machine.ask(0, Question::ForceRelease(name.clone()), at(now));
        let query = asked.map_err(|failure| format!("{failure:?}"))?;
        self.queries.insert(query, Asked::Force { task, name });
        Ok(())
    }

    fn handle(&mut self, event: Effect, now: u64, acts: &mut Acts) {
        match event {
            Effect::Granted(id) => self.granted(id, now, acts),
            Effect::Over(id) => self.over(id, now, acts),
            Effect::Answered(query) => self.answered(query, now, acts),
            _ => {}
        }
    }

    fn granted(&mut self, id: u64, now: u64, acts: &mut Acts) {
        let Some(&mut task) = self.machine.data(id) else { return };
        let Some(Outcome::Granted(token)) = self.machine.outcome(id) else { return };
        let State::Waiting { asks, .. } = &self.tasks[task].state else { return };
        let asks = asks.clone();
        let held = Step::Held { token: token.get(), id: self.id(id) };
        self.write(now, asks.number, held);
        self.tally.last_grant = now;
        if self.traits.records {
            let name = self.record_name(&asks.errand.names[0]);
            self.grants.push((name.clone(), asks.since, now));
            self.deadlines.extend(asks.errand.max_hold.map(|max| (name, now + max)));
        }
        let until = now + asks.errand.hold;
        self.tasks[task].state = State::Holding { asks, since: now, until };
        let next = until.min(now + self.dice.roll(self.tasks[task].errands.check_every()));
        self.sleep_until(task, next, acts);
    }

    /// Handles the end of a request. Some tasks are told that they lost their lock, others find it
    /// at their next check.
    fn over(&mut self, id: u64, now: u64, acts: &mut Acts) {
        let Some(&mut task) = self.machine.data(id) else { return };
        match &self.tasks[task].state {
            State::Holding { asks, since, .. } if asks.id == id => {
                let (asks, since) = (asks.clone(), *since);
                if self.dice.once_in(2) {
                    self.lose(task, &asks, since, now, acts);
                }
            }
            State::Waiting { asks, .. } if asks.id == id => {
                let step = match self.machine.outcome(id) {
                    Some(Outcome::Over(Over::Unavailable)) => Step::Unavailable,
                    Some(Outcome::Over(over)) => Step::Failed(format!("{over:?}").into()),
                    _ => return,
                };
                self.end_wait(task, step, now, acts);
            }
            _ => {}
        }
    }

    fn answered(&mut self, query: u64, now: u64, acts: &mut Acts) {
        let Some(answer) = self.machine.answer(query) else { return };
        self.machine.forget_query(query);
        match (self.queries.remove(&query), answer) {
            (Some(Asked::Force { task, .. }), Ok(Reply::Released(_))) => {
                self.end_wait(task, Step::Forced, now, acts);
            }
            (Some(Asked::Force { task, name }), Err(failure)) => {
                let is_unknown = failure == QueryFailure::OutcomeUnknown;
                if is_unknown && self.traits.bug.strikes_once(Bug::RepeatForce) {
                    let _asked = self.force(task, name, now);
                }
                self.end_wait(task, Step::Failed(format!("{failure:?}").into()), now, acts);
            }
            (Some(Asked::Query { task, id, since, session }), Ok(Reply::Locks { pending, .. })) => {
                let key = RequestKey::new(self.machine.session_number(), id);
                let is_there = pending.iter().any(|info| info.about.request == key);
                if let State::Waiting { asks, .. } = &self.tasks[task].state
                    && (is_there && session == self.sessions && asks.id == id)
                {
                    let number = asks.number;
                    let id = self.id(id);
                    self.write(now, number, Step::Pending { since: Moment(since), id });
                }
            }
            (Some(Asked::Query { .. }), Err(_)) | (None, _) => {}
            (Some(_), answer) => panic!("a question was answered by {answer:?}"),
        }
    }

    /// Returns a name as the record has it: names of two partitions differ.
    fn record_name(&self, name: &str) -> Arc<str> {
        match &*self.traits.partition {
            "" => name.into(),
            partition => format!("{partition}/{name}").into(),
        }
    }

    /// Returns the id of a request of this session at the service.
    fn id(&self, id: u64) -> Arc<str> {
        format!("{}-{}.{id}", self.sessions, self.machine.session_number()).into()
    }
}
