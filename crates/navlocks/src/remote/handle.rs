//! The users' side of a session: the verbs of a backend, sent over a connection.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use navlocks_client::{Stage, is_steal};
use navlocks_core::{Blockers, ClientId, Name, Request, RequestId};
use navlocks_wire::{self as wire, Open, Question, Reply as Answered, RequestKey, ToService};

use super::clock;
use super::entry::{Entry, Over};
use super::partitions::Partitions;
use super::runtime::Carrier;
use super::session::{Client, LinkState, Session, State};
use crate::backend::{Answer, Backend, Blocking, Grant, Reply, Sender, Watched};
use crate::blocking::wait_for;
use crate::connection::Connection;
use crate::deadlock::Cycle;
use crate::error::{Loss, QueryError, RequestErrorKind};
use crate::inbox::Inboxes;
use crate::query::{PartitionSnapshot, Place, Snapshot, Unclaimed};

/// How long the last user of a connection waits until the service knows.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// A session, shared by its users: dropping the last one ends the session.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) session: Arc<Session>,
    /// The runtime that runs the driver.
    pub(super) carrier: Carrier,
    /// The sessions of the same connection to a cluster.
    pub(super) partitions: Arc<Partitions>,
}

impl Handle {
    pub(super) fn new(session: Arc<Session>, carrier: Carrier) -> Self {
        Self { session, carrier, partitions: Arc::default() }
    }

    /// Returns the client that every session begins with.
    pub(crate) fn first_client(&self) -> ClientId {
        ClientId::foreign(0, 0)
    }

    /// Adds a client to the partition of the client `like`.
    pub(crate) fn new_client(&self, like: ClientId) -> ClientId {
        let (state, number) = (self.lock(), like.serial());
        let living = state.clients.get(&number).map(|client| &client.partition);
        let known = living.or_else(|| state.ended.get(&number)).cloned();
        drop(state);
        self.add_client(known.unwrap_or_else(|| self.options.partition.as_str().into()))
    }

    pub(super) fn add_client(&self, partition: Arc<str>) -> ClientId {
        let number = self.input(|state| {
            let number = state.next_client;
            state.next_client += 1;
            state.say(&ToService::Open(Open { client: number, partition: partition.to_string() }));
            state.clients.insert(number, Client { partition, ..Client::default() });
            number
        });
        ClientId::foreign(0, number)
    }

    /// Asks the service. `read` takes the reply that fits the question.
    async fn question<T>(
        &self,
        client: ClientId,
        question: Question,
        read: impl FnOnce(Answered) -> Option<T>,
    ) -> Result<T, QueryError> {
        let reply = self.ask(client.serial(), question).await?;
        read(reply).ok_or(QueryError::Misunderstood)
    }

    /// Asks about a request. A service does not know requests without its id: the answer is the
    /// default.
    fn question_about<'a, T: Default + Send + 'a>(
        &'a self,
        client: ClientId,
        request: RequestId,
        question: fn(RequestKey) -> Question,
        read: impl FnOnce(Answered) -> Option<T> + Send + 'a,
    ) -> Reply<'a, T> {
        match RequestKey::try_from(request) {
            Ok(key) => Box::pin(self.question(client, question(key), read)),
            Err(_) => Box::pin(async move {
                let known = self.lock().clients.contains_key(&client.serial());
                if known { Ok(T::default()) } else { Err(QueryError::ClientEnded) }
            }),
        }
    }
}

impl Deref for Handle {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Without a lease the end of the process informs the service as well.
        let waits = self.options.own_thread && self.lock().known.lease_length().is_some();
        self.session.leave();
        self.partitions.forget(&self.options.partition);
        if waits && tokio::runtime::Handle::try_current().is_err() {
            let _in_time = wait_for(|waker| self.session.poll_left(waker), FAREWELL_MAX);
        }
    }
}

impl Backend for Handle {
    fn request(
        &self,
        sender: &Sender,
        request: &Request,
        tag: Option<&Arc<str>>,
        waker: &Waker,
    ) -> Answer {
        let client = sender.client.serial();
        let Request { scope, mode, wait } = request;
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
                tag: tag.map(|tag| (**tag).into()),
                token: None,
                place: None,
                ms: None,
            });
            let text = wire::write(&message);
            if let Err(fault) = state.known.fits(&text) {
                return Answer::Failed(RequestErrorKind::Refused(fault.into()));
            }
            state.next_request += 1;
            state.say_text(text);
            let now = clock::now();
            state.keepalive.begin(now);
            if let ToService::Request(request) = message {
                if is_steal(&request) {
                    state.thieves.insert(number);
                }
                let sent = state.link == LinkState::Up;
                state.entries.insert(number, Entry::new(request, sent, now, waker.clone()));
            }
            Answer::Pending(RequestId::foreign(state.known.number(), number))
        })
    }

    fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        self.check_lease();
        let losses = self.losses.load(Ordering::Relaxed);
        self.input(|state| {
            let State { entries, wakes, known, .. } = state;
            let number = number_of(id);
            let Some(entry) = entries.get_mut(&number) else {
                return Answer::Failed(RequestErrorKind::ClientEnded);
            };
            match &entry.stage {
                Stage::Pending => {
                    if !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker))
                        && let Some(earlier) = entry.waker.replace(waker.clone())
                    {
                        wakes.discard(earlier);
                    }
                    Answer::Pending(id)
                }
                Stage::Granted(token) | Stage::Held(token) => {
                    let token = *token;
                    entry.stage = Stage::Held(token);
                    let id = RequestId::foreign(known.number(), number);
                    Answer::Granted(Grant { id, token, losses })
                }
                Stage::Over(over) => {
                    let over = over.clone();
                    entries.remove(&number);
                    state.thieves.remove(&number);
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

    fn abandon(&self, id: RequestId) {
        self.input(|state| {
            let number = number_of(id);
            state.thieves.remove(&number);
            if let Some(entry) = state.entries.remove(&number) {
                state.wakes.discard_all(entry.waker);
                state.say(&ToService::Abort(number));
            }
        });
    }

    fn time_out(&self, id: RequestId) -> bool {
        let waits = self.input(|state| {
            let entry = state.entries.get(&number_of(id));
            entry.is_some_and(|entry| matches!(entry.stage, Stage::Pending))
        });
        if waits {
            self.abandon(id);
        }
        waits
    }

    fn release(&self, id: RequestId) -> Result<(), Loss> {
        self.check_lease();
        self.input(|state| {
            let number = number_of(id);
            // A guard's entry stays until the guard is dropped, so there is one.
            let Some(entry) = state.entries.remove(&number) else { return Ok(()) };
            let loss = entry.loss().or_else(|| state.predicted_loss(&entry));
            state.wakes.add_all(entry.into_wakers());
            state.say(&ToService::Release(number));
            loss.map_or(Ok(()), Err)
        })
    }

    fn losses(&self) -> u64 {
        self.check_lease();
        self.losses.load(Ordering::Acquire)
    }

    fn loss(&self, id: RequestId) -> Option<Loss> {
        self.lock().entries.get(&number_of(id)).and_then(Entry::loss)
    }

    fn poll_watch(
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
            // A guard's entry stays until the guard is dropped.
            let Some(entry) = state.entries.get_mut(&number) else { return Poll::Ready(Ok(())) };
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

    fn unwatch(&self, id: RequestId, watch: u64) {
        self.input(|state| {
            let entry = state.entries.get_mut(&number_of(id));
            let waker = entry.and_then(|entry| entry.unwatch(watch));
            state.wakes.discard_all(waker);
        });
    }

    fn end_client(&self, client: ClientId) {
        let client = client.serial();
        self.input(|state| {
            let Some(mut ended) = state.clients.remove(&client) else { return };
            state.wakes.add_all(ended.inboxes.take_wakers());
            state.ended.insert(client, ended.partition);
            self.end_entries(state, |owner| owner == client);
            state.say(&ToService::Close(client));
        });
    }

    fn forget_client(&self, client: ClientId) {
        self.lock().ended.remove(&client.serial());
    }

    /// Ids of a session begin with its number, which another connection may change.
    fn shown_id(&self, client: ClientId) -> ClientId {
        ClientId::foreign(self.lock().known.number(), client.serial())
    }

    fn shown_request(&self, id: RequestId) -> RequestId {
        RequestId::foreign(self.lock().known.number(), number_of(id))
    }

    /// Subscribes at the service when a stream begins, and unsubscribes when the last one ends.
    fn with_inboxes(&self, client: ClientId, work: &mut dyn FnMut(&mut Inboxes)) {
        let client = client.serial();
        self.input(|state| {
            if state.link.is_over() || state.link == LinkState::Leaving {
                return;
            }
            let up = state.link == LinkState::Up;
            let Some(known) = state.clients.get_mut(&client) else { return };
            let Client { inboxes, subscribed, .. } = known;
            let before = inboxes.len();
            work(inboxes);
            let after = inboxes.len();
            if after > before {
                *subscribed = true;
                inboxes.mute_newest();
                state.say(&ToService::Listen(client));
            } else if before > 0 && after == 0 {
                *subscribed = !up;
                state.say(&ToService::Unlisten(client));
            }
        });
    }

    fn leave(&self) {
        self.session.leave();
        self.partitions.all().iter().for_each(|other| other.session.leave());
    }

    fn poll_left(&self, waker: &Waker) -> Poll<()> {
        for other in self.partitions.all() {
            ready!(other.session.poll_left(waker));
        }
        self.session.poll_left(waker)
    }

    fn blocking(&self) -> Blocking {
        // No message is awaited any more.
        if self.lock().link.is_over() { Blocking::Free } else { self.carrier.blocking() }
    }

    fn connection(&self) -> (Connection, u64) {
        self.lock().connection()
    }

    fn watch_connection(&self, changes: u64, waker: &Waker) {
        let waker = waker.clone();
        self.input(|state| state.watch_connection(changes, waker));
    }

    fn descriptor(&self) -> Option<OwnedFd> {
        self.session.descriptor()
    }

    fn lease_left(&self) -> Option<Duration> {
        self.session.lease_left()
    }

    fn recovery(&self, client: ClientId) -> Reply<'_, Vec<Unclaimed>> {
        Box::pin(self.question(client, Question::Recovery, |reply| match reply {
            Answered::Recovery(all) => Some(all.into_iter().map(Into::into).collect()),
            _ => None,
        }))
    }

    fn place(&self, client: ClientId) -> Reply<'_, Option<Place>> {
        Box::pin(self.question(client, Question::Place, place_in))
    }

    fn place_of(&self, client: ClientId, request: RequestId) -> Reply<'_, Option<Place>> {
        self.question_about(client, self.shown_request(request), Question::PlaceOf, place_in)
    }

    fn query_all(&self, client: ClientId) -> Reply<'_, Vec<PartitionSnapshot>> {
        Box::pin(self.question(client, Question::QueryAll, |reply| match reply {
            Answered::Partitions(all) => Some(all.into_iter().map(Into::into).collect()),
            _ => None,
        }))
    }

    fn query(&self, client: ClientId) -> Reply<'_, Snapshot> {
        Box::pin(self.question(client, Question::Query, |reply| match reply {
            Answered::Snapshot { held, pending } => Some(Snapshot::told(held, pending)),
            _ => None,
        }))
    }

    fn blockers(&self, client: ClientId, request: RequestId) -> Reply<'_, Blockers> {
        self.question_about(client, request, Question::Blockers, |reply| match reply {
            Answered::Blockers { hard, soft } => {
                let ids = |keys: Vec<RequestKey>| keys.into_iter().map(Into::into).collect();
                Some(Blockers { hard: ids(hard), soft: ids(soft) })
            }
            _ => None,
        })
    }

    fn is_contended(&self, client: ClientId, lock: RequestId) -> Reply<'_, bool> {
        self.question_about(client, lock, Question::Contended, |reply| match reply {
            Answered::Contended(contended) => Some(contended),
            _ => None,
        })
    }

    fn deadlocks(&self, client: ClientId) -> Reply<'_, Vec<Cycle>> {
        Box::pin(self.question(client, Question::Deadlocks, |reply| match reply {
            Answered::Deadlocks(cycles) => Some(cycles.into_iter().map(Into::into).collect()),
            _ => None,
        }))
    }

    fn force_release(&self, client: ClientId, name: Name) -> Reply<'_, usize> {
        Box::pin(self.question(client, Question::ForceRelease(name), |reply| match reply {
            Answered::Released(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            _ => None,
        }))
    }
}

/// Returns the place in a reply.
fn place_in(reply: Answered) -> Option<Option<Place>> {
    match reply {
        Answered::Place(place) => Some(place.map(Into::into)),
        _ => None,
    }
}

/// Returns the number of a request in its session.
fn number_of(id: RequestId) -> u64 {
    id.serial()
}
