//! What the users of a connection and its driver share.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use navlocks_core::{ClientId, RequestId};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::asking::Asked;
use super::connect::Options;
use super::entry::{Entry, Over, Stage};
use super::lease::{Instant, Lease};
use super::silence::Silence;
use crate::blocking::wait_for;
use crate::error::{Loss, Refusal, RequestError};
use crate::request::Request;
use crate::space::{Answer, Grant};
use crate::subscribers::Inboxes;
use crate::wakes::Wakes;
use crate::watch::Watched;
use navlocks_wire::{self as wire, Fault, FaultCode, Open, ToService};

/// How long the last user of a connection waits until the service was told.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// The users' side of a session: when the last one goes, so does the session.
#[derive(Debug)]
pub(crate) struct Handle(Arc<Session>);

/// What the users of a connection and its driver share. It outlives connections, and sessions in the service's sense.
pub(crate) struct Session {
    pub(super) options: Options,
    state: Mutex<State>,
    /// How many locks were ever lost here: as long as it stands still, no holder needs to ask.
    pub(super) losses: AtomicU64,
    /// Until when the locks here may be believed in.
    pub(super) believed: AtomicU64,
}

#[derive(Debug)]
pub(super) struct State {
    /// The session's number at the service; that of the last one while there is none.
    pub(super) number: u32,
    /// What proves that the session is ours, while it can go on.
    pub(super) secret: Option<String>,
    pub(super) lease: Option<Lease>,
    /// A copy of the connection's, if one is to be kept.
    descriptor: Option<OwnedFd>,
    /// Since when nothing was heard, while something may wait for the service.
    pub(super) silence: Option<Silence>,
    pub(super) link: LinkState,
    /// The longest message that the service takes; longer ones would end the session, and be said again in the next.
    pub(super) message_bytes_max: usize,
    /// What is to be said, while there is a connection.
    pub(super) outbox: VecDeque<Utf8Bytes>,
    /// To be woken when there is something to do for the driver.
    pub(super) driver: Option<Waker>,
    /// Those who wait for the last connection to end.
    pub(super) leavers: Vec<Waker>,
    pub(super) clients: BTreeMap<u64, Client>,
    next_client: u64,
    pub(super) entries: HashMap<u64, Entry>,
    next_request: u64,
    pub(super) asked: HashMap<u64, Asked>,
    pub(super) next_ask: u64,
    next_watch: u64,
    /// Whom this concerns. Empty between inputs.
    pub(super) wakes: Wakes,
}

/// Whether anything that is said can be heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    /// The driver tries to reach the service.
    Down,
    /// The driver still tries, and has done so for longer than anybody was to wait.
    Hopeless,
    /// The service wants nothing to do with this client.
    Refused(Refusal),
    /// All users are gone, or one of them wants the connection to end.
    Leaving,
    /// Nothing will ever be said again.
    Gone,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Carried,
    /// The rest is said, and then it is closed.
    Leaving,
    /// The session that it carried is over.
    Over,
}

#[derive(Debug, Default)]
pub(super) struct Client {
    partition: Arc<str>,
    pub(super) inboxes: Inboxes,
    /// The service tells of events, or would.
    pub(super) listens: bool,
}

impl Handle {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self(session)
    }
}

impl std::ops::Deref for Handle {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Without a lease the end of the process tells the service as well.
        let tell = self.0.options.own_thread && self.0.lock().lease.is_some();
        self.0.leave();
        if tell && tokio::runtime::Handle::try_current().is_err() {
            let _in_time = wait_for(|waker| self.0.poll_left(waker), FAREWELL_MAX);
        }
    }
}

impl Session {
    pub(super) fn new(options: Options) -> Self {
        let first = Client { partition: options.partition.as_str().into(), ..Client::default() };
        Self {
            options,
            state: Mutex::new(State {
                number: 0,
                secret: None,
                lease: None,
                descriptor: None,
                silence: None,
                link: LinkState::Down,
                message_bytes_max: usize::MAX,
                outbox: VecDeque::new(),
                driver: None,
                leavers: Vec::new(),
                clients: BTreeMap::from([(0, first)]),
                next_client: 1,
                entries: HashMap::new(),
                next_request: 1,
                asked: HashMap::new(),
                next_ask: 1,
                next_watch: 1,
                wakes: Wakes::default(),
            }),
            losses: AtomicU64::new(0),
            believed: AtomicU64::new(Instant::NEVER.raw()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes whom that concerns once it is unlocked.
    pub(super) fn input<T>(&self, input: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = input(&mut state);
        let until = state.lease.as_ref().map_or(Instant::NEVER, Lease::until);
        self.believed.store(until.raw(), Ordering::Release);
        if !state.outbox.is_empty() || state.link == LinkState::Leaving {
            let driver = state.driver.take();
            state.wakes.add_all(driver);
        }
        let wakes = std::mem::take(&mut state.wakes);
        drop(state);
        wakes.wake();
        result
    }

    /// Keeps a copy of the descriptor of the connection that begins.
    pub(super) fn keep_descriptor(&self, descriptor: Option<OwnedFd>) {
        self.lock().descriptor = descriptor;
    }

    /// Another copy of the connection's descriptor, while there is a connection.
    pub(crate) fn descriptor(&self) -> Option<OwnedFd> {
        self.lock().descriptor.as_ref()?.try_clone().ok()
    }

    /// Whether a thread that blocks here holds up the driver, on whose work it waits.
    pub(crate) fn is_driven_here(&self) -> bool {
        let current = tokio::runtime::Handle::try_current();
        let alone = |handle: tokio::runtime::Handle| {
            handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread
        };
        !self.options.own_thread && current.is_ok_and(alone)
    }

    pub(crate) fn client_id(&self, client: u64) -> ClientId {
        ClientId::foreign(self.lock().number, client)
    }

    /// Another client: in this partition, or in that of client `like`.
    pub(crate) fn add_client(&self, partition: Option<&str>, like: u64) -> u64 {
        self.input(|state| {
            let partition = match partition {
                Some(partition) => partition.into(),
                // An ended client has left its partition, and whoever acts for it anew finds the default one.
                None => state
                    .clients
                    .get(&like)
                    .map(|known| known.partition.clone())
                    .unwrap_or_default(),
            };
            let number = state.next_client;
            state.next_client += 1;
            state.say(&ToService::Open(Open { client: number, partition: partition.to_string() }));
            state.clients.insert(number, Client { partition, ..Client::default() });
            number
        })
    }

    #[inline(never)]
    pub(crate) fn request(&self, request: &Request, waker: &Waker) -> Answer {
        let client = request.owner.id.serial();
        let navlocks_core::Request { scope, mode, wait } = &request.asked;
        self.input(|state| {
            if let Err(error) = state.hope(client) {
                return Answer::Failed(error);
            }
            let number = state.next_request;
            let message = ToService::Request(wire::Request {
                id: number,
                client,
                names: wire::Names(scope.clone()),
                mode: *mode,
                wait: *wait,
                tag: request.tag_of().map(|tag| tag.as_ref().into()),
            });
            let text = wire::write(&message);
            if let Err(fault) = state.fits(&text) {
                return Answer::Failed(RequestError::Refused(fault.into()));
            }
            state.next_request += 1;
            state.say_text(text);
            state.begin_silence();
            if let ToService::Request(request) = message {
                state.entries.insert(number, Entry::new(request, waker.clone()));
            }
            Answer::Pending(RequestId::foreign(state.number, number))
        })
    }

    /// What became of a request; if nothing yet, `waker` is woken when it has.
    pub(crate) fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        self.check_lease();
        let losses = self.losses.load(Ordering::Relaxed);
        self.input(|state| {
            let State { entries, wakes, number: session, .. } = state;
            let number = number_of(id);
            let Some(entry) = entries.get_mut(&number) else {
                return Answer::Failed(RequestError::ClientEnded);
            };
            match &entry.stage {
                Stage::Pending(_) => {
                    if !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker))
                        && let Some(earlier) = entry.waker.replace(waker.clone())
                    {
                        wakes.discard(earlier);
                    }
                    Answer::Pending(id)
                }
                Stage::Granted(token, _) | Stage::Held(token) => {
                    let token = *token;
                    entry.stage = Stage::Held(token);
                    Answer::Granted(Grant {
                        id: RequestId::foreign(*session, number),
                        token,
                        losses,
                    })
                }
                Stage::Over(over) => {
                    let over = over.clone();
                    entries.remove(&number);
                    match over {
                        Over::Unavailable => Answer::Unavailable,
                        Over::Failed(error) => Answer::Failed(error),
                        Over::Lost(loss) => {
                            state.say(&ToService::Release(number));
                            Answer::Failed(loss.into())
                        }
                    }
                }
            }
        })
    }

    /// The owner of a request that waits lost interest, or its time is up. If it was granted and not heard of, the lock passes on.
    pub(crate) fn abandon(&self, id: RequestId) {
        self.input(|state| {
            let number = number_of(id);
            if let Some(entry) = state.entries.remove(&number) {
                state.wakes.discard_all(entry.waker);
                state.say(&ToService::Abort(number));
            }
        });
    }

    /// The time of a request that waits is up. False when it was decided before.
    pub(crate) fn time_out(&self, id: RequestId) -> bool {
        let waits = self.input(|state| {
            let entry = state.entries.get(&number_of(id));
            entry.is_some_and(|entry| matches!(entry.stage, Stage::Pending(_)))
        });
        if waits {
            self.abandon(id);
        }
        waits
    }

    /// Releases a lock, or says how it had been lost.
    #[inline(never)]
    pub(crate) fn release(&self, id: RequestId) -> Result<(), Loss> {
        self.check_lease();
        self.input(|state| {
            let number = number_of(id);
            // A guard's entry stays until the guard goes, so there is one.
            let Some(entry) = state.entries.remove(&number) else { return Ok(()) };
            let loss = entry.loss();
            state.wakes.add_all(entry.into_wakers());
            state.say(&ToService::Release(number));
            loss.map_or(Ok(()), Err)
        })
    }

    pub(crate) fn losses(&self) -> u64 {
        self.check_lease();
        self.losses.load(Ordering::Acquire)
    }

    pub(crate) fn loss(&self, id: RequestId) -> Option<Loss> {
        self.lock().entries.get(&number_of(id)).and_then(Entry::loss)
    }

    /// Whether what a holder waits for has come; if not, `waker` is woken when it may have.
    pub(crate) fn poll_watch(
        &self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), Loss>> {
        self.check_lease();
        let waker = waker.clone();
        self.input(|state| {
            let number = number_of(id);
            let Some(entry) = state.entries.get_mut(&number) else { return Poll::Pending };
            if let Some(loss) = entry.loss() {
                return Poll::Ready(Err(loss));
            }
            let is_new = watch.is_none();
            let watch = *watch.get_or_insert_with(|| {
                state.next_watch += 1;
                state.next_watch
            });
            let (come, earlier) = entry.watch(watch, watched, waker);
            state.wakes.discard_all(earlier);
            if is_new && watched == Watched::Contention {
                state.say(&ToService::Contention(number));
            }
            if come { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
    }

    pub(crate) fn unwatch(&self, id: RequestId, watch: u64) {
        self.input(|state| {
            let entry = state.entries.get_mut(&number_of(id));
            let waker = entry.and_then(|entry| entry.unwatch(watch));
            state.wakes.discard_all(waker);
        });
    }

    pub(crate) fn knows(&self, client: u64) -> bool {
        self.lock().clients.contains_key(&client)
    }

    pub(crate) fn end_client(&self, client: u64) {
        self.input(|state| {
            let Some(mut ended) = state.clients.remove(&client) else { return };
            state.wakes.add_all(ended.inboxes.take_wakers());
            self.end_entries(state, |owner| owner == client);
            state.say(&ToService::Close(client));
        });
    }

    /// What these clients have is lost here and now, whenever the service hears of it.
    pub(super) fn end_entries(&self, state: &mut State, whose: impl Fn(u64) -> bool) {
        let State { entries, asked, wakes, .. } = state;
        for entry in entries.values_mut().filter(|entry| whose(entry.client)) {
            if entry.is_alive() {
                entry.end(Over::Lost(Loss::ClientEnded), wakes);
                self.count_loss();
            }
        }
        for asked in asked.values_mut().filter(|asked| whose(asked.ask.client)) {
            asked.wake(wakes);
        }
    }

    /// Runs `work` on the event streams of a client; the service is told when one begins and when the last one ends. `None`
    /// when there will be no events any more.
    pub(crate) fn listen<T>(&self, client: u64, work: impl FnOnce(&mut Inboxes) -> T) -> Option<T> {
        self.input(|state| {
            if state.link.is_over() || state.link == LinkState::Leaving {
                return None;
            }
            let up = state.link == LinkState::Up;
            let Client { inboxes, listens, .. } = state.clients.get_mut(&client)?;
            let before = inboxes.len();
            let result = work(inboxes);
            let after = inboxes.len();
            if after > before {
                *listens = true;
                inboxes.deafen_newest();
                state.say(&ToService::Listen(client));
            } else if before > 0 && after == 0 {
                *listens = !up;
                state.say(&ToService::Unlisten(client));
            }
            Some(result)
        })
    }

    /// All users are gone, or one wants the connection to end.
    pub(crate) fn leave(&self) {
        self.input(|state| {
            state.drop_descriptor();
            if !state.link.is_over() {
                // Whoever still holds a lock must know before the service hears of this and grants it to somebody else.
                self.end_entries(state, |_| true);
                state.say(&ToService::Bye);
                state.link = LinkState::Leaving;
                state.wake_streams();
            }
        });
    }

    /// The runtime that carries the connection shuts down: all locks are lost, and the service is to hear of it.
    pub(super) fn say_farewell(&self) {
        self.input(|state| {
            if state.link == LinkState::Up {
                state.say(&ToService::Bye);
                self.lapse(state, Loss::ServiceGone);
            }
        });
    }

    /// Whether the last connection has ended, and all that was said has been sent.
    pub(crate) fn poll_left(&self, waker: &Waker) -> Poll<()> {
        let waker = waker.clone();
        self.input(|state| {
            if state.link.is_over() {
                return Poll::Ready(());
            }
            if !state.leavers.iter().any(|known| known.will_wake(&waker)) {
                state.leavers.push(waker);
            }
            Poll::Pending
        })
    }
}

impl State {
    /// Drops the copy of the descriptor of a connection that is over.
    pub(super) fn drop_descriptor(&mut self) {
        self.descriptor = None;
    }

    /// Notes something to be said, if there is somebody to hear it. Otherwise it follows from the state later.
    pub(super) fn say(&mut self, message: &ToService) {
        if self.link == LinkState::Up {
            self.say_text(wire::write(message));
        }
    }

    pub(super) fn say_text(&mut self, text: String) {
        if self.link == LinkState::Up {
            self.outbox.push_back(text.into());
        }
    }

    /// Wakes all event streams: there will be no events any more.
    pub(super) fn wake_streams(&mut self) {
        let Self { clients, wakes, .. } = self;
        for client in clients.values_mut() {
            wakes.add_all(client.inboxes.take_wakers());
        }
    }

    /// Whether the service takes messages of this length.
    pub(super) fn fits(&self, text: &str) -> Result<(), Fault> {
        let (bytes, max) = (text.len(), self.message_bytes_max);
        if bytes <= max {
            return Ok(());
        }
        let sentence = format!(
            "this takes a message of {bytes} bytes, and the service takes {max}: use shorter names"
        );
        Err(Fault::new(FaultCode::Limit, sentence))
    }

    /// Whether there is any point in asking for something.
    pub(super) fn hope(&self, client: u64) -> Result<(), RequestError> {
        if !self.clients.contains_key(&client) {
            return Err(RequestError::ClientEnded);
        }
        self.link.error().map_or(Ok(()), Err)
    }
}

impl Client {
    pub(super) fn open(&self, number: u64) -> Open {
        Open { client: number, partition: self.partition.to_string() }
    }
}

impl LinkState {
    /// Whether what comes over the connection is to be believed.
    pub(super) fn carries(&self) -> bool {
        matches!(self, Self::Up | Self::Leaving)
    }

    /// Whether there will never be a connection again.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Gone)
    }

    /// Why nothing will come of a request.
    pub(super) fn error(&self) -> Option<RequestError> {
        match self {
            Self::Up | Self::Down => None,
            Self::Hopeless => Some(RequestError::Unreachable),
            Self::Refused(refusal) => Some(RequestError::Refused(refusal.clone())),
            Self::Leaving | Self::Gone => Some(RequestError::ClientEnded),
        }
    }
}

/// The number of a request in its session.
fn number_of(id: RequestId) -> u64 {
    id.serial()
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("url", &self.options.url).finish_non_exhaustive()
    }
}
