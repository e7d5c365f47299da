//! An agent: a thread with a JavaScript runtime, a mailbox of locks, and an event loop.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use navlocks_core::kit::Group;
use navlocks_threads::Wake;
use rquickjs::context::EvalOptions;
use rquickjs::loader::ScriptLoader;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Module, Object, Runtime};

use crate::Process;
use crate::bridge;
use crate::modules::{FOLDER, Modules};

/// Something that wakes an event loop.
pub enum Event {
    /// There is mail of locks.
    Mail,
    /// A message of a worker, or of the owner (0), as JSON.
    Message(u32, String),
    /// A worker has ended, perhaps with an error.
    Ended(u32, Option<String>),
    /// This worker was terminated.
    Terminated,
}

/// Wakes the event loop of an agent for its mail.
pub struct Bell(Sender<Event>);

impl Wake for Bell {
    fn wake(&self) {
        // A loop that has ended reads no mail.
        let _ = self.0.send(Event::Mail);
    }
}

/// The scripts that an agent runs first.
pub enum Start {
    /// Classic scripts of files.
    Files(Vec<String>),
    /// A classic script.
    Text(String),
}

/// The owner of a worker, and the worker's number there.
pub struct Owner {
    pub number: u32,
    pub events: Sender<Event>,
}

/// A worker as its owner keeps it.
struct Worker {
    events: Sender<Event>,
    terminated: Arc<AtomicBool>,
}

/// The part of an agent that its functions of the host share.
pub struct Agent {
    process: Arc<Process>,
    events: Sender<Event>,
    owner: Option<Owner>,
    workers: Mutex<Vec<Worker>>,
}

/// Ends the locks of an agent with it, however it ends.
struct Mailbox(Arc<Process>, Group);

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.0.locks.end(self.1);
    }
}

impl Agent {
    /// Runs an agent in this thread until it has nothing left to do.
    pub fn run(process: &Arc<Process>, start: Start, owner: Option<Owner>) -> Result<(), String> {
        let terminated = Arc::default();
        Self::run_with(process, start, owner, channel(), &terminated)
    }

    fn run_with(
        process: &Arc<Process>,
        start: Start,
        owner: Option<Owner>,
        (events, received): (Sender<Event>, Receiver<Event>),
        terminated: &Arc<AtomicBool>,
    ) -> Result<(), String> {
        let mailbox = Mailbox(process.clone(), process.locks.add_mailbox(Bell(events.clone())));
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        // Also a script that never returns ends when its worker is terminated.
        let stop = terminated.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || stop.load(Ordering::Relaxed))));
        runtime.set_loader(Modules, ScriptLoader::default());
        let context = Context::full(&runtime).map_err(|error| error.to_string())?;
        let workers = Mutex::default();
        let agent = Arc::new(Self { process: process.clone(), events, owner, workers });
        let ended = context.with(|ctx| {
            let run = agent.begin(&ctx, mailbox.1, start);
            let run = run.and_then(|host| agent.turn(&host, &received, mailbox.1));
            run.catch(&ctx).map_err(|error| error.to_string())
        });
        agent.terminate_all();
        if terminated.load(Ordering::Relaxed) { Ok(()) } else { ended }
    }

    /// Defines the global object, then runs the first scripts. Returns the object of the host.
    fn begin<'js>(
        self: &Arc<Self>,
        ctx: &Ctx<'js>,
        mailbox: Group,
        start: Start,
    ) -> rquickjs::Result<Object<'js>> {
        let host = bridge::functions(ctx, self, mailbox)?;
        ctx.globals().set("host", host.clone())?;
        let main = format!("{FOLDER}/js/main.js");
        Module::evaluate(ctx.clone(), main.clone(), std::fs::read(main)?)?.finish::<()>()?;
        match start {
            Start::Files(files) => {
                if let Some(folder) = files.first().and_then(|file| Path::new(file).parent()) {
                    ctx.globals().set("scriptFolder", folder.to_string_lossy().into_owned())?;
                }
                for file in files {
                    ctx.eval_file_with_options::<(), _>(&file, script(&file))?;
                }
            }
            Start::Text(text) => ctx.eval_with_options::<(), _>(text, script("start"))?,
        }
        Ok(host)
    }

    /// The event loop: one task, then all promise jobs, until there is nothing to wait for.
    fn turn(
        &self,
        host: &Object<'_>,
        received: &Receiver<Event>,
        mailbox: Group,
    ) -> rquickjs::Result<()> {
        let ctx = host.ctx();
        let step: Function<'_> = host.get("step")?;
        let handle: Function<'_> = host.get("handle")?;
        loop {
            while ctx.execute_pending_job() {}
            // Runs a task. Otherwise returns the milliseconds until the next timer; negative if
            // there is none, -2 if there is nothing to wait for either, -3 after close().
            let wait: Option<f64> = step.call(())?;
            let event = match wait {
                None => received.try_recv().ok(),
                Some(-3.0) => return Ok(()),
                Some(-2.0) => match received.try_recv() {
                    Ok(event) => Some(event),
                    Err(_) => return Ok(()),
                },
                Some(wait) if wait < 0.0 => received.recv().ok(),
                Some(wait) => match received.recv_timeout(Duration::from_secs_f64(wait / 1000.0)) {
                    Ok(event) => Some(event),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
                },
            };
            match event {
                None => {}
                Some(Event::Mail) => {
                    handle.call(("mail", bridge::take_mail(&self.process.locks, mailbox)))?
                }
                Some(Event::Message(from, text)) => handle.call(("message", from, text))?,
                Some(Event::Ended(worker, error)) => handle.call(("ended", worker, error))?,
                Some(Event::Terminated) => return Ok(()),
            }
        }
    }

    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker with these scripts. Returns its number.
    pub fn start_worker(&self, files: Vec<String>) -> u32 {
        let mut workers = self.workers();
        let number = workers.len() as u32 + 1;
        let (terminated, channel) = (Arc::default(), channel());
        workers.push(Worker { events: channel.0.clone(), terminated: Arc::clone(&terminated) });
        let (process, events) = (self.process.clone(), self.events.clone());
        let owner = Some(Owner { number, events: events.clone() });
        thread::spawn(move || {
            let files = Start::Files(files);
            let error = Self::run_with(&process, files, owner, channel, &terminated).err();
            let _ = events.send(Event::Ended(number, error));
        });
        number
    }

    /// Sends a message to a worker, or to the owner (0).
    pub fn post(&self, to: u32, text: String) {
        let _ = match (to.checked_sub(1), &self.owner) {
            (None, Some(owner)) => owner.events.send(Event::Message(owner.number, text)),
            (None, None) => Ok(()),
            (Some(index), _) => match self.workers().get(index as usize) {
                Some(worker) => worker.events.send(Event::Message(0, text)),
                None => Ok(()),
            },
        };
    }

    pub fn terminate(&self, worker: u32) {
        if let Some(worker) = self.workers().get((worker as usize).wrapping_sub(1)) {
            worker.terminated.store(true, Ordering::Relaxed);
            let _ = worker.events.send(Event::Terminated);
        }
    }

    fn terminate_all(&self) {
        let count = self.workers().len() as u32;
        (1..=count).for_each(|worker| self.terminate(worker));
    }

    pub fn has_owner(&self) -> bool {
        self.owner.is_some()
    }
}

/// Returns the options of a classic script.
fn script(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    options
}
