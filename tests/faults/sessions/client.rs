//! A client: the machine that ships, with tasks that request, wait, check, hold, check again and
//! release, and record it all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use navlocks_client::{
    Addresses, Begin, Command, DialFailure, Event as Effect, LinkState, Machine,
    Moment as MachineMoment, Outcome, Over, Settings,
};
use navlocks_core::{Name, Scope};
use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Line, Mode, Moment, RequestNo, Step, Wait, What, Who};
use navlocks_wire::{
    self as wire, LocksOf, Names, Question, Reply, RequestKey, ToClient, ToService,
};

use crate::random_requests::{ROUNDS, TASKS, Taste, Wish};
use crate::sessions::service::{ClientNo, LEASE, LinkNo};
use crate::sessions::world::Event;

const TASTE: Taste = Taste { kinds: 32, patience: 2000, looks: 6 };

pub(super) struct Client {
    pub(super) who: Who,
    dice: Dice,
    pub(super) alive: bool,
    /// True if it is stopped; its messages wait until it continues.
    pub(super) stopped: bool,
    pub(super) backlog: VecDeque<Event>,
    /// How often it was stopped.
    pub(super) stops: u32,
    /// True if the kernel tells its service when it dies.
    pub(super) local: bool,
    /// Each request has the number of its task.
    machine: Machine<usize>,
    link: Option<LinkNo>,
    /// The machine waits for a socket.
    is_dialing: bool,
    /// How many sessions have begun: a service may reuse their numbers.
    sessions: u32,
    tasks: Vec<Task>,
    made: RequestNo,
    queries: BTreeMap<u64, Asked>,
    pub(super) lines: Vec<Line>,
}

struct Task {
    state: State,
    rounds: u32,
    /// Tells a valid wakeup from an outdated one.
    turn: u32,
}

enum State {
    Idle,
    Waiting { asks: Asks, looks: u64, gives_up: bool },
    Holding { asks: Asks, looks: u64 },
    Over,
}

#[derive(Clone)]
struct Asks {
    /// Its number in the record.
    number: RequestNo,
    /// Its number in the session.
    id: u64,
    wait: Wait,
}

/// A question, and the task that asks.
enum Asked {
    Query { task: usize, id: u64, since: u64, session: u32 },
    Force { task: usize },
}

/// An action of a client.
#[derive(Default)]
pub(super) struct Acts {
    pub(super) send: Vec<(LinkNo, ToService)>,
    /// The tasks to wake: when, which, and its turn.
    pub(super) wake: Vec<(u64, usize, u32)>,
    pub(super) close: Vec<LinkNo>,
    /// The time at which it wants to have connected.
    pub(super) dial: Option<u64>,
}

/// Returns the time of the world as its machines count it.
fn at(now: u64) -> MachineMoment {
    MachineMoment::from_nanoseconds(now * 1_000_000)
}

impl Client {
    pub(super) fn new(number: ClientNo, seed: u64, local: bool, now: u64) -> Self {
        let task = || Task { state: State::Idle, rounds: ROUNDS, turn: 0 };
        let mut dice = Dice::new(seed, 1 + number as u64);
        let url = if local { "unix:/service" } else { "ws://service" };
        let addresses = Addresses::parse(url).expect("an address");
        let lease = Some(Duration::from_millis(LEASE));
        let settings = Settings { lease, ..Settings::new(addresses, Begin::Persist) };
        let machine = Machine::new(settings, dice.roll(u64::MAX), at(now));
        Self {
            who: Who::from(&*format!("c{number}")),
            dice,
            alive: true,
            stopped: false,
            backlog: VecDeque::new(),
            stops: 0,
            local,
            machine,
            link: None,
            is_dialing: false,
            sessions: 0,
            tasks: (0..TASKS).map(|_| task()).collect(),
            made: 0,
            queries: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    pub(super) fn start(&mut self, now: u64) -> Acts {
        let mut acts = Acts::default();
        (0..TASKS).for_each(|task| self.sleep(task, now, 50, &mut acts));
        self.drive(now, &mut acts);
        acts
    }

    /// Returns true if it has no more requests to make.
    pub(super) fn is_done(&self) -> bool {
        let over =
            |task: &Task| matches!(task.state, State::Idle | State::Over) && task.rounds == 0;
        self.tasks.iter().all(over)
    }

    /// Returns true if it holds a lock, as far as it knows.
    pub(super) fn holds(&self) -> bool {
        self.tasks.iter().any(|task| match &task.state {
            State::Holding { asks, .. } => self.machine.loss(asks.id).is_none(),
            _ => false,
        })
    }

    /// Returns the link over which it was welcomed, if it is up.
    pub(super) fn link(&self) -> Option<LinkNo> {
        self.link.filter(|_| *self.machine.link() == LinkState::Up)
    }

    fn write(&mut self, now: u64, number: RequestNo, step: Step) {
        let what = What::Request(number, step);
        self.lines.push(Line { at: Moment(now), who: self.who.clone(), what });
    }

    fn sleep(&mut self, task: usize, now: u64, longest: u64, acts: &mut Acts) {
        let turn = &mut self.tasks[task].turn;
        *turn += 1;
        acts.wake.push((now + self.dice.roll(longest), task, *turn));
    }

    fn rest(&mut self, task: usize, now: u64, acts: &mut Acts) {
        self.tasks[task].state = State::Idle;
        self.sleep(task, now, 200, acts);
    }

    /// Ends a wait of a task.
    fn end_wait(&mut self, task: usize, step: Step, now: u64, acts: &mut Acts) {
        if let State::Waiting { asks, .. } = &self.tasks[task].state {
            let number = asks.number;
            self.write(now, number, step);
            self.rest(task, now, acts);
        }
    }

    /// Carries out the commands of the machine, and handles its events.
    fn drive(&mut self, now: u64, acts: &mut Acts) {
        loop {
            if let Some(event) = self.machine.poll_event() {
                self.handle(event, now, acts);
                continue;
            }
            let Some(command) = self.machine.poll_command() else { return };
            match command {
                Command::Dial(_) => {
                    self.is_dialing = true;
                    acts.dial = Some(now + self.dice.roll(60));
                }
                Command::Open => self.machine.opened(at(now)),
                Command::Send(text) => {
                    let message = wire::read(&text).expect("a client writes messages");
                    acts.send.extend(self.link.map(|link| (link, message)));
                }
                Command::Present(_) => self.machine.present(),
                Command::Drop => {
                    self.is_dialing = false;
                    acts.close.extend(self.link.take());
                }
                Command::Close | Command::Drain => {
                    acts.close.extend(self.link.take());
                    self.machine.broken(at(now));
                }
                Command::StartService => panic!("clients here start no service"),
            }
        }
    }

    /// Gives the machine an input, and drives it on.
    fn input(&mut self, now: u64, input: impl FnOnce(&mut Machine<usize>, MachineMoment)) -> Acts {
        let mut acts = Acts::default();
        input(&mut self.machine, at(now));
        self.drive(now, &mut acts);
        acts
    }

    /// Lets the moments come that are over: from time to time, and before a task acts.
    pub(super) fn beat(&mut self, now: u64) -> Acts {
        let is_due = at(now) >= self.machine.deadline();
        self.input(now, |machine, now| {
            if is_due {
                machine.elapsed(now)
            }
        })
    }

    /// Finds that the lease is over, before anything else happens after a stop.
    pub(super) fn check_lease(&mut self, now: u64) -> Acts {
        self.input(now, Machine::check_lease)
    }

    /// Connects over this link, or finds that no service listens.
    pub(super) fn dialed(&mut self, link: Option<LinkNo>, now: u64) -> Acts {
        if !std::mem::take(&mut self.is_dialing) {
            return Acts { close: link.into_iter().collect(), ..Acts::default() };
        }
        self.link = link;
        match link {
            Some(_) => self.input(now, |machine, now| machine.dialed(true, None, now)),
            None => self.input(now, |machine, now| machine.dial_failed(DialFailure::Absent, now)),
        }
    }

    pub(super) fn broken(&mut self, link: LinkNo, now: u64) -> Acts {
        if self.link != Some(link) {
            return Acts::default();
        }
        self.link = None;
        self.input(now, Machine::broken)
    }

    pub(super) fn hear(&mut self, link: LinkNo, message: ToClient, now: u64) -> Acts {
        if self.link != Some(link) {
            return Acts::default();
        }
        if let ToClient::Welcome(welcome) = &message {
            self.sessions += u32::from(!welcome.resumed);
        }
        self.input(now, |machine, now| machine.received(message, now))
    }

    pub(super) fn wake(&mut self, task: usize, turn: u32, now: u64) -> Acts {
        let mut acts = self.beat(now);
        if self.tasks[task].turn != turn {
            return acts;
        }
        match std::mem::replace(&mut self.tasks[task].state, State::Over) {
            State::Over => {}
            State::Idle if self.tasks[task].rounds == 0 => {}
            State::Idle => self.ask(task, now, &mut acts),
            State::Waiting { asks, looks: 0, gives_up: true } => {
                let timed = matches!(asks.wait, Wait::AtMost(_));
                self.write(now, asks.number, if timed { Step::TimedOut } else { Step::Withdrawn });
                self.machine.abort(asks.id);
                self.rest(task, now, &mut acts);
            }
            State::Waiting { asks, looks, gives_up } => {
                if looks > 0 {
                    self.query(task, asks.id, now);
                    self.sleep(task, now, 600, &mut acts);
                }
                let looks = looks.saturating_sub(1);
                self.tasks[task].state = State::Waiting { asks, looks, gives_up };
            }
            State::Holding { asks, .. } if self.machine.loss(asks.id).is_some() => {
                self.lose(task, &asks, now, &mut acts);
            }
            State::Holding { asks, looks: 0 } => {
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
            State::Holding { asks, looks } => {
                self.write(now, asks.number, Step::Still);
                self.tasks[task].state = State::Holding { asks, looks: looks - 1 };
                self.sleep(task, now, 400, &mut acts);
            }
        }
        self.drive(now, &mut acts);
        acts
    }

    fn lose(&mut self, task: usize, asks: &Asks, now: u64, acts: &mut Acts) {
        let loss = self.machine.release(asks.id).and_then(|(loss, _)| loss);
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
        self.tasks[task].rounds -= 1;
        self.made += 1;
        let Wish { names, mode, wait, gives_up, looks } = TASTE.wish(&mut self.dice);
        let number = self.made;
        self.write(now, number, Step::Asked { names: names.clone(), mode, wait });
        let id = if wait == Wait::Force {
            let question = Question::ForceRelease(Name::from(&*names[0]));
            let query = self.machine.ask(0, question, at(now)).expect("the machine lives");
            self.queries.insert(query, Asked::Force { task });
            0
        } else {
            let request = request(&names, mode, wait);
            self.machine.request(request, task, at(now)).expect("the machine lives")
        };
        self.tasks[task].state =
            State::Waiting { asks: Asks { number, id, wait }, looks, gives_up };
        if looks > 0 || gives_up {
            self.sleep(task, now, 600, acts);
        }
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
        let looks = self.dice.roll(8);
        self.tasks[task].state = State::Holding { asks, looks };
        self.sleep(task, now, 400, acts);
    }

    /// Handles the end of a request. Some tasks are told that they lost their lock, others find it
    /// at their next check.
    fn over(&mut self, id: u64, now: u64, acts: &mut Acts) {
        let Some(&mut task) = self.machine.data(id) else { return };
        match &self.tasks[task].state {
            State::Holding { asks, .. } if asks.id == id => {
                let asks = asks.clone();
                if self.dice.once_in(2) {
                    self.lose(task, &asks, now, acts);
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
            (Some(Asked::Force { task }), Ok(Reply::Released(_))) => {
                self.end_wait(task, Step::Forced, now, acts);
            }
            (Some(Asked::Force { task }), Err(failure)) => {
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

    /// Returns the id of a request of this session at the service.
    fn id(&self, id: u64) -> Arc<str> {
        format!("{}-{}.{id}", self.sessions, self.machine.session_number()).into()
    }
}

fn request(names: &[Arc<str>], mode: Mode, wait: Wait) -> wire::Request {
    let scope = Scope::new(names.iter().map(|name| &**name)).expect("clients ask for a name");
    wire::Request {
        id: 0,
        client: 0,
        names: Names(scope),
        mode: mode.into(),
        wait: match wait {
            Wait::Queue | Wait::AtMost(_) | Wait::Force => navlocks_core::Wait::Queue,
            Wait::IfAvailable => navlocks_core::Wait::IfAvailable,
            Wait::Overtake => navlocks_core::Wait::Overtake,
            Wait::Steal => navlocks_core::Wait::Steal,
        },
        tag: None,
        traceparent: None,
        token: None,
        max_hold_ms: None,
        within: None,
        place: None,
        ms: None,
    }
}
