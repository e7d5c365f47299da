//! A thread with a few tasks: each requests a lock, waits until it is woken or loses patience,
//! holds the lock for a moment, and releases it or sends it to a thread that does.

use std::future::{Future, IntoFuture};
use std::mem::{self, ManuallyDrop};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use navlocks::{FencingToken, Lock, Locks, Request, RequestError, RequestFuture};

use crate::dice::{Dice, operations, seed};
use crate::supervisor::{Budget, Crew};

const THREADS: usize = 6;
const TASKS_PER_THREAD: usize = 5;

/// The checks of a test around the locks of its workers.
pub(crate) trait Scene: Send + Sync + 'static {
    /// A lock, with the state to release it.
    type Held: Send;

    fn ask(&self, dice: &mut Dice) -> Request;

    fn enter(&self, lock: Lock) -> Self::Held;

    /// Checks a held lock now and then.
    fn look(&self, held: &Self::Held, dice: &mut Dice);

    fn leave(&self, held: Self::Held);

    /// Returns true if a request may fail with this error.
    fn expects(&self, error: &RequestError) -> bool;
}

/// Plays a share of all operations in this scene.
pub(crate) fn play<S: Scene>(scene: &Arc<S>, locks: &Locks, percent: u64) {
    let (ops, seed) = (operations(percent), seed());
    let budget = Budget::new(ops);
    let (hand, handed) = mpsc::channel();
    let mut crew = Crew::new();
    for thread in 0..THREADS {
        let (scene, budget, hand) = (scene.clone(), budget.clone(), hand.clone());
        let (dice, done) = (Dice::new(seed, thread), Done::default());
        crew.spawn(move || Worker { scene, budget, hand, dice, done }.run());
    }
    drop(hand);
    let scene = scene.clone();
    crew.spawn(move || {
        handed.into_iter().for_each(|held| scene.leave(held));
        Done::default()
    });
    let mut all = Done::default();
    for mut done in crew.join(&budget, locks) {
        all.tokens.append(&mut done.tokens);
        all.woken += done.woken;
        all.dropped += done.dropped;
    }
    let Done { mut tokens, woken, dropped } = all;
    let granted = tokens.len() as u64;
    // The threads did contend.
    println!("of {ops}: {granted} granted, {woken} woken, {dropped} dropped");
    assert!(granted >= ops / 2 && woken >= ops / 100 && dropped >= ops / 100);
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len() as u64, granted, "a token was given twice");
}

struct Worker<S: Scene> {
    scene: Arc<S>,
    budget: Arc<Budget>,
    /// Receives held locks.
    hand: Sender<S::Held>,
    dice: Dice,
    done: Done,
}

/// The results of a worker.
#[derive(Default)]
struct Done {
    /// The tokens of its locks.
    tokens: Vec<FencingToken>,
    woken: u64,
    /// The number of dropped pending requests.
    dropped: u64,
}

enum Task<H> {
    Idle,
    Waiting {
        request: RequestFuture,
        wake_up: Arc<WakeUp>,
        /// Turns until the request is dropped; none means never.
        patience: Option<u32>,
    },
    Holding {
        /// Stays held when a check fails, so that no other client fails for the same reason.
        held: ManuallyDrop<H>,
        turns: u32,
    },
    Over,
}

/// The outcome of one turn of a task.
#[derive(PartialEq, Eq)]
enum Turn {
    Went,
    Sleeps,
    Over,
}

impl<S: Scene> Worker<S> {
    fn run(mut self) -> Done {
        let mut tasks: Vec<_> = (0..TASKS_PER_THREAD).map(|_| Task::Idle).collect();
        loop {
            let turns: Vec<Turn> = tasks.iter_mut().map(|task| self.turn(task)).collect();
            if turns.iter().all(|turn| *turn == Turn::Over) {
                return self.done;
            }
            if !turns.contains(&Turn::Went) {
                thread::park();
            }
        }
    }

    fn turn(&mut self, task: &mut Task<S::Held>) -> Turn {
        *task = match mem::replace(task, Task::Over) {
            Task::Over => return Turn::Over,
            Task::Idle if !self.budget.take() => Task::Over,
            Task::Idle => {
                let request = self.scene.ask(&mut self.dice).into_future();
                let patience = self.dice.once_in(4).then(|| self.dice.roll(8));
                self.poll(request, WakeUp::new(), patience)
            }
            // Dropped, whether it was granted meanwhile or not.
            Task::Waiting { patience: Some(0), request, .. } => {
                drop(request);
                self.done.dropped += 1;
                Task::Idle
            }
            Task::Waiting { request, wake_up, patience } => {
                let patience = patience.map(|turns| turns - 1);
                if wake_up.take() {
                    self.done.woken += 1;
                    self.poll(request, wake_up, patience)
                } else {
                    let turn = if patience.is_some() { Turn::Went } else { Turn::Sleeps };
                    *task = Task::Waiting { request, wake_up, patience };
                    return turn;
                }
            }
            Task::Holding { held, turns: 0 } => {
                let held = ManuallyDrop::into_inner(held);
                if self.dice.once_in(8) {
                    // Sending fails only after a panic of the receiver, which is reported there.
                    let _ = self.hand.send(held);
                } else {
                    self.scene.leave(held);
                }
                Task::Idle
            }
            Task::Holding { held, turns } => {
                self.scene.look(&held, &mut self.dice);
                Task::Holding { held, turns: turns - 1 }
            }
        };
        Turn::Went
    }

    fn poll(
        &mut self,
        mut request: RequestFuture,
        wake_up: Arc<WakeUp>,
        patience: Option<u32>,
    ) -> Task<S::Held> {
        let waker = Waker::from(wake_up.clone());
        match Pin::new(&mut request).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => Task::Waiting { request, wake_up, patience },
            Poll::Ready(Ok(lock)) => {
                self.done.tokens.push(lock.fencing_token());
                let held = ManuallyDrop::new(self.scene.enter(lock));
                Task::Holding { held, turns: self.dice.roll(3) }
            }
            Poll::Ready(Err(error)) => {
                assert!(self.scene.expects(&error), "{error}");
                Task::Idle
            }
        }
    }
}

/// The wakeup of one request. Only this makes its task poll it: a lost wakeup loses the request.
struct WakeUp {
    came: AtomicBool,
    thread: Thread,
}

impl WakeUp {
    fn new() -> Arc<Self> {
        Arc::new(Self { came: AtomicBool::new(false), thread: thread::current() })
    }

    fn take(&self) -> bool {
        self.came.swap(false, Ordering::Acquire)
    }
}

impl Wake for WakeUp {
    fn wake(self: Arc<Self>) {
        self.came.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
