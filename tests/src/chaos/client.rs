//! A client that requests locks at random and records its steps and answers.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use navlocks::{Lock, Locks, Request, RequestError, RequestErrorKind, Scope};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::chaos::Dice;
use crate::record::{Mode, Moment, Pen, RequestNo, Step, Wait};

/// The habits of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Habits {
    /// The names of its requests.
    pub names: Vec<Arc<str>>,
    /// How many requests each of its tasks makes, unless it finishes earlier.
    pub rounds: u32,
    /// One request in this many is a steal; none, if 0.
    pub steals: u64,
    /// One request in this many force-releases; none, if 0.
    pub forces: u64,
    /// The longest time to hold a lock.
    pub hold: Duration,
    /// The longest time to wait for one, where the request has a limit.
    pub wait: Duration,
}

/// A client that records. Clones are the same client, for tasks that request concurrently.
#[derive(Clone, Debug)]
pub struct Client {
    locks: Locks,
    pen: Arc<Pen>,
    habits: Arc<Habits>,
    next: Arc<AtomicU32>,
    finishing: Arc<AtomicBool>,
}

impl Client {
    /// Makes a client that uses these locks.
    pub fn new(locks: Locks, pen: Pen, habits: Habits) -> Self {
        let (pen, habits) = (Arc::new(pen), Arc::new(habits));
        Self { locks, pen, habits, next: Arc::default(), finishing: Arc::default() }
    }

    /// Stops making requests. Requests in flight are completed.
    pub fn finish(&self) {
        self.finishing.store(true, Ordering::Relaxed);
    }

    /// Makes one request after the other. Needs a tokio runtime with time.
    ///
    /// # Errors
    ///
    /// The record could not be written. A failed request is recorded, and is no error here.
    pub async fn play(self, mut dice: Dice) -> io::Result<()> {
        for _ in 0..self.habits.rounds {
            if self.finishing.load(Ordering::Relaxed) {
                break;
            }
            Round { client: &self, number: self.next.fetch_add(1, Ordering::Relaxed) }
                .play(&mut dice)
                .await?;
        }
        Ok(())
    }
}

/// One request.
struct Round<'a> {
    client: &'a Client,
    number: RequestNo,
}

/// The outcome of the wait.
type Answer = Result<Option<Lock>, RequestError>;

impl Round<'_> {
    async fn play(&self, dice: &mut Dice) -> io::Result<()> {
        let habits = &self.client.habits;
        let names = dice.names(&habits.names);
        let mut chance = |one_in| one_in > 0 && dice.once_in(one_in);
        let (force, steal) = (chance(habits.forces), chance(habits.steals));
        if force && let [name, ..] = &names[..] {
            return self.force(name.clone()).await;
        }
        let shared = !steal && dice.once_in(2);
        let wait = match dice.roll(8) {
            _ if steal => Wait::Steal,
            0 => Wait::IfAvailable,
            1 | 2 => Wait::AtMost(dice.up_to(habits.wait)),
            3 if shared => Wait::Overtake,
            _ => Wait::Queue,
        };
        let Ok(scope) = Scope::new(names.iter().map(|name| &**name)) else { return Ok(()) };
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        let request = self.client.locks.request(scope).tag(self.tag());
        let request = if shared { request.shared() } else { request };
        self.step(Step::Asked { names, mode, wait })?;
        let answer = match wait {
            Wait::IfAvailable => request.if_available().await,
            Wait::Steal => request.steal().await.map(Some),
            Wait::AtMost(time) => self.wait(request.timeout(time), dice).await?,
            Wait::Overtake => self.wait(request.overtake(), dice).await?,
            Wait::Queue | Wait::Force => self.wait(request, dice).await?,
        };
        match answer {
            Ok(Some(lock)) => self.hold(lock, dice).await,
            Ok(None) if wait == Wait::IfAvailable => self.step(Step::Unavailable),
            Ok(None) => self.step(Step::Withdrawn),
            Err(error) if is_timeout(&error) => self.step(Step::TimedOut),
            Err(error) => self.step(Step::Failed(error.to_string().into())),
        }
    }

    fn step(&self, step: Step) -> io::Result<()> {
        self.client.pen.step(self.number, step)
    }

    /// Returns the tag that identifies the request in a query.
    fn tag(&self) -> String {
        format!("{}#{}", self.client.pen.who(), self.number)
    }

    /// Waits, queries the queue now and then, and sometimes drops the request, which is `None`.
    async fn wait(&self, request: Request, dice: &mut Dice) -> io::Result<Answer> {
        let habits = &self.client.habits;
        let mut request = pin!(request.into_future());
        for _ in 0..dice.roll(3) {
            match timeout(dice.up_to(habits.wait / 4), &mut request).await {
                Ok(answer) => return Ok(answer.map(Some)),
                Err(_) => self.look().await?,
            }
        }
        if dice.once_in(6) {
            return Ok(match timeout(dice.up_to(habits.wait), &mut request).await {
                Ok(answer) => answer.map(Some),
                // The request is dropped on return, before that is on record.
                Err(_) => Ok(None),
            });
        }
        Ok(request.await.map(Some))
    }

    /// Records whether the request is in the queue.
    async fn look(&self) -> io::Result<()> {
        let since = Moment::now();
        // A service that does not answer now has not seen the request either.
        let Ok(snapshot) = self.client.locks.query().await else { return Ok(()) };
        let tag = self.tag();
        let mut pending = snapshot.pending.iter();
        match pending.find(|info| info.tag.as_deref() == Some(&tag)) {
            Some(info) => self.step(Step::Pending { since, id: info.request.to_string().into() }),
            None => Ok(()),
        }
    }

    async fn hold(&self, lock: Lock, dice: &mut Dice) -> io::Result<()> {
        let (token, id) = (lock.fencing_token().get(), lock.request_id().to_string().into());
        self.step(Step::Held { token, id })?;
        for _ in 0..1 + dice.roll(4) {
            let time = dice.up_to(self.client.habits.hold / 4);
            if dice.once_in(2) {
                sleep(time).await;
            } else if let Ok(loss) = timeout(time, lock.lost()).await {
                return self.step(Step::Lost(loss.to_string().into()));
            }
            let at = Moment::now();
            match lock.loss() {
                None => self.client.pen.step_at(at, self.number, Step::Still)?,
                Some(loss) => return self.step(Step::Lost(loss.to_string().into())),
            }
        }
        self.step(Step::Releasing)?;
        match lock.release() {
            Ok(()) => self.step(Step::Released),
            Err(loss) => self.step(Step::Lost(loss.to_string().into())),
        }
    }

    async fn force(&self, name: Arc<str>) -> io::Result<()> {
        let names = vec![name.clone()];
        self.step(Step::Asked { names, mode: Mode::Exclusive, wait: Wait::Force })?;
        match self.client.locks.force_release(&*name).await {
            Ok(_) => self.step(Step::Forced),
            Err(error) => self.step(Step::Failed(error.to_string().into())),
        }
    }
}

/// Returns true if the time of a request was over, also while its service was out of reach.
fn is_timeout(error: &RequestError) -> bool {
    matches!(error.kind(), RequestErrorKind::TimedOut { .. } | RequestErrorKind::Unreachable)
}
