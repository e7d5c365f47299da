//! A client: tasks that request, wait, check, hold, check again and release, and record it all.

use std::collections::VecDeque;

use navlocks_tests::chaos::Dice;
use navlocks_tests::record::{Line, Moment, RequestNo, Step, Wait, What, Who};

use crate::random_requests::{ROUNDS, TASKS, Taste, Wish};
use crate::simulation::events::Event;
use crate::simulation::message::{Ask, ClientNo, Down, Up};

/// How long a client keeps its locks without the service.
pub(super) const LEASE: u64 = 900;

const TASTE: Taste = Taste { kinds: 24, patience: 600, looks: 4 };

pub(super) struct Client {
    number: ClientNo,
    pub(super) who: Who,
    pub(super) dice: Dice,
    pub(super) alive: bool,
    /// True if it is stopped; its messages wait until it continues.
    pub(super) stopped: bool,
    pub(super) backlog: VecDeque<Event>,
    /// How often it was stopped.
    pub(super) stops: u32,
    pub(super) session: u32,
    /// The service it is connected to.
    epoch: Option<u32>,
    /// The time from which on it takes all its locks for lost.
    pub(super) lease_end: u64,
    tasks: Vec<Task>,
    made: RequestNo,
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
    Waiting { ask: Ask, looks: u64, gives_up: bool },
    Holding { number: RequestNo, looks: u64, lost: bool },
    Over,
}

/// The effects of a client on the world.
#[derive(Default)]
pub(super) struct Acts {
    pub(super) send: Vec<Up>,
    /// The tasks to wake: when, which, and its turn.
    pub(super) wake: Vec<(u64, usize, u32)>,
}

impl Client {
    pub(super) fn new(number: ClientNo, seed: u64) -> Self {
        let task = || Task { state: State::Idle, rounds: ROUNDS, turn: 0 };
        Self {
            number,
            who: Who::from(&*format!("c{number}")),
            dice: Dice::new(seed, 1 + number as u64),
            alive: true,
            stopped: false,
            backlog: VecDeque::new(),
            stops: 0,
            session: 0,
            epoch: None,
            lease_end: u64::MAX,
            tasks: (0..TASKS).map(|_| task()).collect(),
            made: 0,
            lines: Vec::new(),
        }
    }

    pub(super) fn start(&mut self, now: u64) -> Acts {
        let mut acts = Acts::default();
        (0..TASKS).for_each(|task| self.sleep(task, now, 50, &mut acts));
        acts
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
        self.sleep(task, now, 100, acts);
    }

    pub(super) fn wake(&mut self, task: usize, turn: u32, now: u64) -> Acts {
        let mut acts = Acts::default();
        if self.tasks[task].turn != turn {
            return acts;
        }
        match std::mem::replace(&mut self.tasks[task].state, State::Over) {
            State::Over => {}
            State::Idle if self.tasks[task].rounds == 0 => {}
            State::Idle => self.ask(task, now, &mut acts),
            State::Waiting { ask, looks: 0, gives_up } if gives_up => {
                let timed = matches!(ask.wait, Wait::AtMost(_));
                self.write(now, ask.number, if timed { Step::TimedOut } else { Step::Withdrawn });
                acts.send.push(Up::Abandon(ask.number));
                self.rest(task, now, &mut acts);
            }
            State::Waiting { ask, looks, gives_up } => {
                if looks > 0 {
                    acts.send.push(Up::Query(ask.number, Moment(now)));
                    self.sleep(task, now, 300, &mut acts);
                }
                let looks = looks.saturating_sub(1);
                self.tasks[task].state = State::Waiting { ask, looks, gives_up };
            }
            State::Holding { number, lost, .. } if lost || self.lease_end <= now => {
                self.write(now, number, Step::Lost("it is".into()));
                self.rest(task, now, &mut acts);
            }
            State::Holding { number, looks: 0, .. } => {
                self.write(now, number, Step::Releasing);
                self.write(now, number, Step::Released);
                acts.send.push(Up::Release(number));
                self.rest(task, now, &mut acts);
            }
            State::Holding { number, looks, lost } => {
                self.write(now, number, Step::Still);
                self.tasks[task].state = State::Holding { number, looks: looks - 1, lost };
                self.sleep(task, now, 100, &mut acts);
            }
        }
        if self.epoch.is_none() {
            acts.send.clear();
        }
        acts
    }

    fn ask(&mut self, task: usize, now: u64, acts: &mut Acts) {
        self.tasks[task].rounds -= 1;
        self.made += 1;
        let Wish { names, mode, wait, gives_up, looks } = TASTE.wish(&mut self.dice);
        let ask = Ask { number: self.made, names, mode, wait, at: Moment(now) };
        let step = Step::Asked { names: ask.names.clone(), mode, wait };
        self.write(now, ask.number, step);
        acts.send.push(message(&ask));
        self.tasks[task].state = State::Waiting { ask, looks, gives_up };
        if looks > 0 || gives_up {
            self.sleep(task, now, 300, acts);
        }
    }

    pub(super) fn hear(&mut self, session: u32, message: Down, now: u64) -> Acts {
        let mut acts = Acts::default();
        match message {
            Down::Gone(epoch) if self.epoch == Some(epoch) => self.lose_session(now, &mut acts),
            _ if self.session != session => {}
            Down::Granted { number, token, id } => {
                if let Some(task) = self.waiting(number) {
                    self.write(now, number, Step::Held { token, id });
                    let looks = self.dice.roll(4);
                    self.tasks[task].state = State::Holding { number, looks, lost: false };
                    self.sleep(task, now, 100, &mut acts);
                }
            }
            Down::Unavailable(number) => {
                self.end_wait(number, Step::Unavailable, now, &mut acts);
            }
            Down::Forced(number) => self.end_wait(number, Step::Forced, now, &mut acts),
            Down::Lost(number) => self.lose(number, now, &mut acts),
            Down::Pending { number, since, id } => {
                if self.waiting(number).is_some() {
                    self.write(now, number, Step::Pending { since, id });
                }
            }
            Down::Gone(_) | Down::Back => {}
        }
        acts
    }

    fn waiting(&self, number: RequestNo) -> Option<usize> {
        let waits =
            |task: &Task| matches!(&task.state, State::Waiting { ask, .. } if ask.number == number);
        self.tasks.iter().position(waits)
    }

    fn end_wait(&mut self, number: RequestNo, step: Step, now: u64, acts: &mut Acts) {
        if let Some(task) = self.waiting(number) {
            self.write(now, number, step);
            self.rest(task, now, acts);
        }
    }

    /// Reports a loss: some tasks are notified, others find it at their next check.
    fn lose(&mut self, lock: RequestNo, now: u64, acts: &mut Acts) {
        let at_once = self.dice.once_in(2);
        for task in 0..TASKS {
            match &mut self.tasks[task].state {
                State::Holding { number, lost, .. } if *number == lock => *lost = true,
                _ => continue,
            }
            if at_once {
                self.write(now, lock, Step::Lost("it was taken away".into()));
                self.rest(task, now, acts);
            }
        }
    }

    /// Loses all locks. Pending requests are made again, or aborted.
    pub(super) fn lose_session(&mut self, now: u64, acts: &mut Acts) {
        self.session += 1;
        self.epoch = None;
        for task in 0..TASKS {
            match &self.tasks[task].state {
                State::Holding { number, .. } => {
                    let number = *number;
                    self.write(now, number, Step::Lost("the service is gone".into()));
                    self.rest(task, now, acts);
                }
                State::Waiting { ask, .. } => {
                    let number = ask.number;
                    if self.dice.once_in(4) {
                        self.write(now, number, Step::Failed("the service is gone".into()));
                        self.rest(task, now, acts);
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.epoch.is_some()
    }

    pub(super) fn is_connected_to(&self, epoch: u32) -> bool {
        self.epoch == Some(epoch)
    }

    /// Connects to the service of this epoch.
    pub(super) fn connect(&mut self, epoch: u32) -> Acts {
        self.epoch = Some(epoch);
        self.lease_end = u64::MAX;
        let again = self.tasks.iter().filter_map(|task| match &task.state {
            State::Waiting { ask, .. } => Some(message(ask)),
            _ => None,
        });
        Acts { send: [Up::Hello].into_iter().chain(again).collect(), wake: Vec::new() }
    }

    pub(super) fn number(&self) -> ClientNo {
        self.number
    }
}

fn message(ask: &Ask) -> Up {
    match ask.wait {
        Wait::Force => Up::Force(ask.number, ask.names[0].clone()),
        _ => Up::Ask(ask.clone()),
    }
}
