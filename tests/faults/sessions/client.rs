//! A client: tasks that request, wait, check, hold, check again and release, and record it all.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use navlocks_core::{Name, Scope};
use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Line, Mode, Moment, RequestNo, Step, Wait, What, Who};
use navlocks_wire::{
    self as wire, Ask, FaultCode, Names, Open, Question, Reply, ToClient, ToService,
};

use crate::sessions::link::Connection;
use crate::sessions::service::{ClientNo, LinkNo};
use crate::sessions::world::Event;
use crate::wish::{ROUNDS, TASKS, Taste, Wish};

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
    pub(super) connection: Connection,
    tasks: Vec<Task>,
    made: RequestNo,
    questions: HashMap<u64, Asked>,
    next_question: u64,
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
    Holding { asks: Asks, token: u64, looks: u64, lost: bool },
    Over,
}

#[derive(Clone)]
struct Asks {
    number: RequestNo,
    names: Vec<Arc<str>>,
    mode: Mode,
    wait: Wait,
}

enum Asked {
    Query { request: RequestNo, since: u64 },
    Force { request: RequestNo },
}

/// An action of a client.
#[derive(Default)]
pub(super) struct Acts {
    pub(super) send: Vec<(LinkNo, ToService)>,
    /// The tasks to wake: when, which, and its turn.
    pub(super) wake: Vec<(u64, usize, u32)>,
    pub(super) close: Option<LinkNo>,
    /// The time at which it wants to have connected.
    pub(super) dial: Option<u64>,
}

impl Client {
    pub(super) fn new(number: ClientNo, seed: u64, local: bool) -> Self {
        let task = || Task { state: State::Idle, rounds: ROUNDS, turn: 0 };
        Self {
            who: Who::from(&*format!("c{number}")),
            dice: Dice::new(seed, 1 + number as u64),
            alive: true,
            stopped: false,
            backlog: VecDeque::new(),
            stops: 0,
            connection: Connection::new(local),
            tasks: (0..TASKS).map(|_| task()).collect(),
            made: 0,
            questions: HashMap::new(),
            next_question: 1,
            lines: Vec::new(),
        }
    }

    pub(super) fn start(&mut self, now: u64) -> Acts {
        let mut acts = Acts::default();
        (0..TASKS).for_each(|task| self.sleep(task, now, 50, &mut acts));
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
        self.tasks.iter().any(|task| matches!(task.state, State::Holding { lost: false, .. }))
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

    /// Sends over the connection, if there is one. Otherwise the next connection begins with the
    /// whole state.
    fn say(&self, message: ToService, acts: &mut Acts) {
        acts.send.extend(self.connection.link.map(|link| (link, message)));
    }

    /// Maintains the connection: from time to time, and before every other step.
    pub(super) fn beat(&mut self, now: u64) -> Acts {
        let mut acts = Acts::default();
        if !self.connection.is_believed(now) {
            self.lapse(now, &mut acts);
        }
        if self.connection.is_silent(now) {
            acts.close = self.connection.drop_link();
        }
        if let Some(number) = self.connection.ping(now) {
            self.say(ToService::Ping(number), &mut acts);
        }
        let Connection { link, greeting, dialling, .. } = &mut self.connection;
        if link.is_none() && greeting.is_none() && !*dialling {
            *dialling = true;
            acts.dial = Some(now + self.dice.roll(60));
        }
        acts
    }

    pub(super) fn greet(&mut self, link: LinkNo, now: u64) -> Acts {
        let hello = self.connection.hello(link, now);
        Acts { send: vec![(link, ToService::Hello(hello))], ..Acts::default() }
    }

    /// Returns the requests that the service must know, in order.
    fn alive(&self) -> Vec<u64> {
        let mut alive: Vec<u64> = self.tasks.iter().filter_map(alive).collect();
        alive.sort_unstable();
        alive
    }

    pub(super) fn broken(&mut self, link: LinkNo) {
        let Connection { link: own, greeting, .. } = &self.connection;
        if *own == Some(link) || greeting.as_ref().is_some_and(|it| it.link == link) {
            self.connection.drop_link();
        }
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
                self.say(ToService::Abort(u64::from(asks.number)), &mut acts);
                self.rest(task, now, &mut acts);
            }
            State::Waiting { asks, looks, gives_up } => {
                if looks > 0 {
                    self.query(asks.number, now, &mut acts);
                    self.sleep(task, now, 600, &mut acts);
                }
                let looks = looks.saturating_sub(1);
                self.tasks[task].state = State::Waiting { asks, looks, gives_up };
            }
            State::Holding { asks, lost: true, .. } => {
                self.write(now, asks.number, Step::Lost("it found out".into()));
                self.rest(task, now, &mut acts);
            }
            State::Holding { asks, looks: 0, .. } => {
                self.write(now, asks.number, Step::Releasing);
                self.write(now, asks.number, Step::Released);
                self.say(ToService::Release(u64::from(asks.number)), &mut acts);
                self.rest(task, now, &mut acts);
            }
            State::Holding { asks, token, looks, lost } => {
                self.write(now, asks.number, Step::Still);
                let looks = looks - 1;
                self.tasks[task].state = State::Holding { asks, token, looks, lost };
                self.sleep(task, now, 400, &mut acts);
            }
        }
        acts
    }

    fn query(&mut self, request: RequestNo, now: u64, acts: &mut Acts) {
        let id = self.next_question;
        self.next_question += 1;
        self.questions.insert(id, Asked::Query { request, since: now });
        self.say(ToService::Ask(Ask { id, client: 0, question: Question::Query }), acts);
    }

    fn force(&mut self, asks: &Asks, acts: &mut Acts) {
        let id = self.next_question;
        self.next_question += 1;
        self.questions.insert(id, Asked::Force { request: asks.number });
        let question = Question::ForceRelease(Name::from(&*asks.names[0]));
        self.say(ToService::Ask(Ask { id, client: 0, question }), acts);
    }

    fn ask(&mut self, task: usize, now: u64, acts: &mut Acts) {
        self.tasks[task].rounds -= 1;
        self.made += 1;
        let Wish { names, mode, wait, gives_up, looks } = TASTE.wish(&mut self.dice);
        let asks = Asks { number: self.made, names, mode, wait };
        let step = Step::Asked { names: asks.names.clone(), mode, wait };
        self.write(now, asks.number, step);
        match wait {
            Wait::Force => self.force(&asks, acts),
            _ => self.say(ToService::Request(request(&asks, None)), acts),
        }
        self.tasks[task].state = State::Waiting { asks, looks, gives_up };
        if looks > 0 || gives_up {
            self.sleep(task, now, 600, acts);
        }
    }

    pub(super) fn hear(&mut self, link: LinkNo, message: ToClient, now: u64) -> Acts {
        let mut acts = self.beat(now);
        let greets = self.connection.greeting.as_ref().is_some_and(|it| it.link == link);
        if self.connection.link != Some(link) && !greets {
            return acts;
        }
        match message {
            ToClient::Welcome(welcome) => {
                let earlier = self.connection.session.is_some();
                match self.connection.welcome(&welcome) {
                    None => acts.close = Some(link),
                    Some(resumed) => {
                        if !resumed && earlier {
                            self.lose_all(now, &mut acts);
                        }
                        self.say_all(resumed, &mut acts);
                    }
                }
            }
            ToClient::Error(fault) => {
                if fault.code == FaultCode::UnknownSession {
                    self.lapse(now, &mut acts);
                }
                acts.close = self.connection.drop_link().or(acts.close);
            }
            ToClient::Granted(wire::Granted { id, token }) => {
                let held = Step::Held { token, id: self.connection.id(id as u32).into() };
                if let Some((task, asks)) = self.waiting(id) {
                    self.write(now, asks.number, held);
                    let looks = self.dice.roll(8);
                    self.tasks[task].state = State::Holding { asks, token, looks, lost: false };
                    self.sleep(task, now, 400, &mut acts);
                }
            }
            ToClient::Unavailable(id) => self.end_wait(id, Step::Unavailable, now, &mut acts),
            ToClient::Refused(refused) => {
                let why = Step::Failed(refused.fault.to_string().into());
                self.end_wait(refused.id, why, now, &mut acts);
            }
            ToClient::Lost(wire::Lost { id, cause, .. }) => {
                self.say(ToService::Release(id), &mut acts);
                self.end_wait(id, Step::Failed(format!("{cause:?}").into()), now, &mut acts);
                self.lose(id, &format!("{cause:?}"), now, &mut acts);
            }
            ToClient::Pong(number) => self.connection.pong(number),
            ToClient::Answer(wire::Answer { id, reply }) => {
                self.answered(id, reply, now, &mut acts)
            }
            other => panic!("a client is told {other:?}"),
        }
        acts
    }

    fn answered(&mut self, id: u64, reply: Reply, now: u64, acts: &mut Acts) {
        match (self.questions.remove(&id), reply) {
            (Some(Asked::Force { request }), Reply::Released(_)) => {
                self.end_wait(u64::from(request), Step::Forced, now, acts);
            }
            (Some(Asked::Query { request, since }), Reply::Snapshot { pending, .. }) => {
                let session = self.connection.session.as_ref().map_or(0, |it| it.number);
                let key = wire::RequestKey::new(session, u64::from(request));
                let is_there = pending.iter().any(|info| info.about.request == key);
                if is_there && self.waiting(u64::from(request)).is_some() {
                    let id = self.connection.id(request).into();
                    self.write(now, request, Step::Pending { since: Moment(since), id });
                }
            }
            (None, _) => {}
            (Some(_), reply) => panic!("a question was answered by {reply:?}"),
        }
    }

    /// Sends the whole state.
    fn say_all(&mut self, resumed: bool, acts: &mut Acts) {
        self.questions.clear();
        if self.connection.local {
            self.say(ToService::Present, acts);
        }
        if resumed {
            self.say(ToService::Open(Open { client: 0, partition: String::new() }), acts);
        }
        let alive = self.alive();
        let known = |number: &&Task, wanted: u64| self::alive(number) == Some(wanted);
        for &number in &alive {
            let Some(task) = self.tasks.iter().find(|task| known(task, number)) else { continue };
            match &task.state {
                State::Holding { asks, token, .. } if resumed => {
                    self.say(ToService::Request(request(asks, Some(*token))), acts);
                }
                State::Waiting { asks, .. } => {
                    self.say(ToService::Request(request(asks, None)), acts);
                }
                _ => {}
            }
        }
        if resumed {
            self.say(ToService::Claimed, acts);
        }
        let forces: Vec<Asks> = self.tasks.iter().filter_map(forces).collect();
        for asks in forces {
            self.force(&asks, acts);
        }
    }

    fn waiting(&self, number: u64) -> Option<(usize, Asks)> {
        self.tasks.iter().enumerate().find_map(|(task, it)| match &it.state {
            State::Waiting { asks, .. } if u64::from(asks.number) == number => {
                Some((task, asks.clone()))
            }
            _ => None,
        })
    }

    fn end_wait(&mut self, number: u64, step: Step, now: u64, acts: &mut Acts) {
        if let Some((task, asks)) = self.waiting(number) {
            self.write(now, asks.number, step);
            self.rest(task, now, acts);
        }
    }

    /// Reports a loss: some tasks are notified, others find it at their next check.
    fn lose(&mut self, number: u64, why: &str, now: u64, acts: &mut Acts) {
        let at_once = self.dice.once_in(2);
        for task in 0..TASKS {
            let State::Holding { asks, lost, .. } = &mut self.tasks[task].state else { continue };
            if u64::from(asks.number) != number || *lost {
                continue;
            }
            *lost = true;
            let number = asks.number;
            if at_once {
                self.write(now, number, Step::Lost(why.into()));
                self.rest(task, now, acts);
            }
        }
    }

    fn lose_all(&mut self, now: u64, acts: &mut Acts) {
        for number in self.alive() {
            self.lose(number, "the session is over", now, acts);
        }
    }

    /// Ends the session: its locks are lost, and its waiters wait for the next one.
    fn lapse(&mut self, now: u64, acts: &mut Acts) {
        acts.close = self.connection.lapse();
        self.lose_all(now, acts);
    }
}

fn alive(task: &Task) -> Option<u64> {
    match &task.state {
        State::Waiting { asks, .. } if asks.wait != Wait::Force => Some(u64::from(asks.number)),
        State::Holding { asks, lost: false, .. } => Some(u64::from(asks.number)),
        _ => None,
    }
}

fn forces(task: &Task) -> Option<Asks> {
    match &task.state {
        State::Waiting { asks, .. } if asks.wait == Wait::Force => Some(asks.clone()),
        _ => None,
    }
}

fn request(asks: &Asks, token: Option<u64>) -> wire::Request {
    let scope = Scope::new(asks.names.iter().map(|name| &**name)).expect("clients ask for a name");
    wire::Request {
        id: u64::from(asks.number),
        client: 0,
        names: Names(scope),
        mode: asks.mode.into(),
        wait: match asks.wait {
            Wait::Queue | Wait::AtMost(_) | Wait::Force => navlocks_core::Wait::Queue,
            Wait::IfAvailable => navlocks_core::Wait::IfAvailable,
            Wait::Overtake => navlocks_core::Wait::Overtake,
            Wait::Steal => navlocks_core::Wait::Steal,
        },
        tag: None,
        token,
        max_hold_ms: None,
        place: None,
        ms: None,
    }
}
