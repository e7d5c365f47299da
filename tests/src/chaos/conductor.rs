//! The conductor: starts processes, disturbs them at random, and records each act.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::chaos::{Dice, Service};
use crate::record::{CONDUCTOR, Deed, History, Moment, Pen, SERVICE, What, Who};

/// The amount of chaos.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of clients at any time: a killed one is replaced.
    pub clients: u64,
    /// How long they are disturbed.
    pub time: Duration,
    /// The longest time between two acts.
    pub pause: Duration,
    /// One act in this many is done to the service, if there is one.
    pub service: u64,
    /// The longest stop. A stop longer than a lease makes it lapse.
    pub stop: Duration,
    /// The longest time of any effect, a lease included.
    pub patience: Duration,
    /// A lock outlasts absences that are shorter than this together.
    pub endurance: Duration,
    /// The longest outage of a killed service.
    pub outage: Duration,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Ended {
    /// The records of all processes.
    pub history: History,
    /// The number of kills and stops, those of the service included.
    pub deeds: u64,
    /// Clients that ended with a failure; their standard error has the reason.
    pub failed: Vec<Who>,
    /// Clients that did not finish. The check of the history shows what they waited for.
    pub stuck: Vec<Who>,
}

/// Conducts client processes and, if there is one, the service that they use.
pub struct Conductor {
    folder: PathBuf,
    pen: Pen,
    dice: Dice,
    plan: Plan,
    recruit: Box<Recruit>,
    crew: Vec<Member>,
    service: Option<(Box<dyn Service>, Child)>,
    recruited: u64,
    deeds: u64,
    failed: Vec<Who>,
}

/// Makes the command of a client with this name and seed. It must write its record to the folder.
type Recruit = dyn FnMut(&Who, u64) -> io::Result<Command>;

struct Member {
    who: Who,
    child: Child,
    /// When it may continue, if it is stopped.
    stopped: Option<Instant>,
}

impl Conductor {
    /// Starts the service and the clients.
    ///
    /// # Errors
    ///
    /// A process cannot be started or written to, or the service does not answer.
    pub fn new(
        folder: &Path,
        seed: u64,
        plan: Plan,
        service: Option<Box<dyn Service>>,
        recruit: impl FnMut(&Who, u64) -> io::Result<Command> + 'static,
    ) -> io::Result<Self> {
        let mut conductor = Self {
            folder: folder.to_path_buf(),
            pen: Pen::new(folder, Who::from(CONDUCTOR))?,
            dice: Dice::new(seed, 0),
            plan,
            recruit: Box::new(recruit),
            crew: Vec::new(),
            service: None,
            recruited: 0,
            deeds: 0,
            failed: Vec::new(),
        };
        if let Some(service) = service {
            conductor.start_service(service)?;
        }
        for _ in 0..conductor.plan.clients {
            conductor.start_client()?;
        }
        Ok(conductor)
    }

    /// Disturbs all processes for the planned time, lets them finish, and ends the rest.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn conduct(mut self) -> io::Result<Ended> {
        let deadline = Instant::now() + self.plan.time;
        while Instant::now() < deadline {
            sleep(self.dice.up_to(self.plan.pause));
            self.resume(Instant::now())?;
            self.replace_finished()?;
            self.disturb()?;
        }
        let stuck = self.finish()?;
        let Plan { patience, endurance, .. } = self.plan;
        self.pen.write(Moment::now(), What::Over { patience, endurance })?;
        let history = History::read(&self.folder).map_err(io::Error::other)?;
        let failed = std::mem::take(&mut self.failed);
        Ok(Ended { history, deeds: self.deeds, failed, stuck })
    }

    fn disturb(&mut self) -> io::Result<()> {
        self.deeds += 1;
        let to_service = self.service.is_some() && self.dice.once_in(self.plan.service);
        let number = self.dice.roll(self.crew.len() as u64) as usize;
        match (to_service, self.dice.once_in(2)) {
            (true, true) => self.restart_service(),
            (true, false) => self.pause_service(),
            (false, true) => self.kill_client(number),
            (false, false) => self.stop_client(number),
        }
    }

    fn start_client(&mut self) -> io::Result<()> {
        self.recruited += 1;
        let who = Who::from(&*format!("c{}", self.recruited));
        let seed = self.dice.roll(u64::MAX);
        let child = (self.recruit)(&who, seed)?.spawn()?;
        self.pen.deed(&who, Deed::Started)?;
        self.crew.push(Member { who, child, stopped: None });
        Ok(())
    }

    fn kill_client(&mut self, number: usize) -> io::Result<()> {
        let Member { who, mut child, .. } = self.crew.swap_remove(number);
        self.pen.deed(&who, Deed::Killing)?;
        child.kill()?;
        child.wait()?;
        self.pen.deed(&who, Deed::Killed)?;
        self.start_client()
    }

    fn stop_client(&mut self, number: usize) -> io::Result<()> {
        let member = &mut self.crew[number];
        if member.stopped.is_none() {
            self.pen.deed(&member.who, Deed::Stopping)?;
            signal(&member.child, Signal::STOP)?;
            member.stopped = Some(Instant::now() + self.dice.up_to(self.plan.stop));
        }
        Ok(())
    }

    /// Continues the processes that were stopped long enough.
    fn resume(&mut self, now: Instant) -> io::Result<()> {
        for member in &mut self.crew {
            if member.stopped.take_if(|until| *until <= now).is_some() {
                signal(&member.child, Signal::CONT)?;
                self.pen.deed(&member.who, Deed::Continued)?;
            }
        }
        Ok(())
    }

    fn replace_finished(&mut self) -> io::Result<()> {
        for _ in 0..self.reap()? {
            self.start_client()?;
        }
        Ok(())
    }

    /// Reaps processes that ended by themselves. Returns their number.
    fn reap(&mut self) -> io::Result<usize> {
        let before = self.crew.len();
        let mut staying = Vec::with_capacity(before);
        for mut member in self.crew.drain(..) {
            let Some(status) = member.child.try_wait()? else {
                staying.push(member);
                continue;
            };
            let deed = if status.success() { Deed::Finished } else { Deed::Failed };
            self.pen.deed(&member.who, deed)?;
            if !status.success() {
                self.failed.push(member.who);
            }
        }
        self.crew = staying;
        Ok(before - self.crew.len())
    }

    fn start_service(&mut self, mut service: Box<dyn Service>) -> io::Result<()> {
        let child = service.start()?;
        self.pen.deed(&Who::from(SERVICE), Deed::Started)?;
        self.service = Some((service, child));
        self.await_service()
    }

    /// Waits until the service answers; clients wait by themselves.
    fn await_service(&mut self) -> io::Result<()> {
        let Some((service, child)) = &mut self.service else { return Ok(()) };
        let deadline = Instant::now() + self.plan.patience;
        while !service.answers() {
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("the service ended by itself: {status}")));
            }
            if deadline < Instant::now() {
                return Err(io::Error::other("the service does not answer"));
            }
            sleep(LOOK_AGAIN);
        }
        self.pen.deed(&Who::from(SERVICE), Deed::Answered)
    }

    fn restart_service(&mut self) -> io::Result<()> {
        let Some((service, mut child)) = self.service.take() else { return Ok(()) };
        self.pen.deed(&Who::from(SERVICE), Deed::Killing)?;
        child.kill()?;
        child.wait()?;
        self.pen.deed(&Who::from(SERVICE), Deed::Killed)?;
        sleep(self.dice.up_to(self.plan.outage));
        self.start_service(service)
    }

    /// Stops the service. Its next answer shows that it continues.
    fn pause_service(&mut self) -> io::Result<()> {
        let Some((_, child)) = &self.service else { return Ok(()) };
        self.pen.deed(&Who::from(SERVICE), Deed::Stopping)?;
        signal(child, Signal::STOP)?;
        sleep(self.dice.up_to(self.plan.stop));
        signal(child, Signal::CONT)?;
        self.await_service()
    }

    /// Continues all clients and asks them to finish. Returns the ones that have not when no line
    /// was written for longer than the patience.
    fn finish(&mut self) -> io::Result<Vec<Who>> {
        for member in &mut self.crew {
            // The end of their input asks them to finish.
            drop(member.child.stdin.take());
            member.stopped = member.stopped.map(|_| Instant::now());
        }
        self.resume(Instant::now())?;
        let (mut written, mut since) = (0, Instant::now());
        while !self.crew.is_empty() && since.elapsed() <= self.plan.patience + LOOK_AGAIN {
            sleep(LOOK_AGAIN);
            self.reap()?;
            let now = self.written()?;
            if now != written {
                (written, since) = (now, Instant::now());
            }
        }
        Ok(self.crew.iter().map(|member| member.who.clone()).collect())
    }

    /// Returns the number of recorded bytes.
    fn written(&self) -> io::Result<u64> {
        self.folder.read_dir()?.map(|entry| Ok(entry?.metadata()?.len())).sum()
    }
}

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Sends a signal to a child that was not reaped, so that its process id is still its own.
fn signal(child: &Child, signal: Signal) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), signal)?)
}

impl Drop for Conductor {
    /// Kills all children. This is not recorded, because the history has ended.
    fn drop(&mut self) {
        let service = self.service.iter_mut().map(|(_, child)| child);
        for child in self.crew.iter_mut().map(|member| &mut member.child).chain(service) {
            // It may have ended by itself just now.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl std::fmt::Debug for Conductor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conductor").field("plan", &self.plan).finish_non_exhaustive()
    }
}
