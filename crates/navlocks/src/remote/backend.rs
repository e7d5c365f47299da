//! The users' side of a session: the verbs of a backend, sent over a connection.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use navlocks_client::{LinkState, Outcome};
use navlocks_core::{Blockers, ClientId, Explained, Mode, Name, Request, RequestId};
use navlocks_wire::{self as wire, LocksOf, Question, Reply as Answered, RequestKey, WaitsOf};

use super::driver::clock;
use super::driver::runtime::DriverRuntime;
use super::partitions::Partitions;
use super::wakers::{Session, Tasks};
use crate::backend::extras::Extras;
use crate::backend::inbox::Inboxes;
use crate::backend::{Answer, Backend, Blocking, Grant, Reply, Sender, Watched};
use crate::blocking::wait_for;
use crate::connection::Connection;
use crate::error::{DowngradeError, LossCause, QueryError, RequestErrorKind};
use crate::query::{PartitionSnapshot, Place, Snapshot, UnclaimedSession, Waits};

/// How long the last user of a connection waits until the service knows.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// A session, shared by its users: dropping the last one ends the session.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(super) session: Arc<Session>,
    /// The runtime that runs the driver.
    pub(super) runtime: DriverRuntime,
    /// The sessions of the same connection to a cluster.
    pub(super) partitions: Arc<Partitions>,
}

impl Handle {
    pub(super) fn new(session: Arc<Session>, runtime: DriverRuntime) -> Self {
        Self { session, runtime, partitions: Arc::default() }
    }

    /// Returns the client that every session begins with.
    pub(crate) fn first_client(&self) -> ClientId {
        ClientId::foreign(0, 0)
    }

    /// Adds a client to the partition of the client `like`.
    pub(crate) fn new_client(&self, like: ClientId) -> ClientId {
        let state = self.lock();
        let known = state.machine.partition_of(like.serial());
        let partition = known.unwrap_or(&self.options.partition).to_owned();
        drop(state);
        self.add_client(&partition)
    }

    pub(super) fn add_client(&self, partition: &str) -> ClientId {
        ClientId::foreign(0, self.input(|state| state.machine.add_client(partition)))
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
                let known = self.lock().machine.has_client(client.serial());
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
        let waits = self.options.own_thread && self.lock().machine.has_lease();
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
        extras: Option<&Extras>,
        waker: &Waker,
    ) -> Answer {
        let Request { scope, mode, wait } = request;
        let request = wire::Request {
            id: 0,
            client: sender.client.serial(),
            names: wire::Names(scope.clone()),
            mode: *mode,
            wait: *wait,
            tag: extras.and_then(|extras| extras.tag.as_deref()).map(Into::into),
            traceparent: extras
                .and_then(|extras| extras.traceparent.as_deref())
                .and_then(wire::TraceParent::parse),
            max_hold_ms: extras.and_then(|it| it.max_hold).map(|max| max.as_millis() as u64),
            within: None,
            token: None,
            place: None,
            ms: None,
        };
        let tasks = Tasks::new(waker.clone());
        let within = extras.and_then(|extras| extras.within);
        self.input(|state| {
            let session = state.machine.session_number();
            let within = within.and_then(|outer| RequestKey::try_from(outer).ok());
            let within = within.map(|outer| wire::Within::in_session(session, outer));
            let request = wire::Request { within, ..request };
            match state.machine.request(request, tasks, clock::now()) {
                Ok(number) => Answer::Pending(RequestId::foreign(session, number)),
                Err(over) => over.into(),
            }
        })
    }

    fn poll_request(&self, id: RequestId, waker: &Waker) -> Answer {
        self.check_deadlines();
        let losses = self.session.losses(Ordering::Relaxed);
        self.input(|state| {
            let number = number_of(id);
            let session = state.machine.session_number();
            match state.machine.outcome(number) {
                None => Answer::Failed(RequestErrorKind::ClientEnded),
                Some(Outcome::Pending(tasks)) => {
                    if !tasks.waker.as_ref().is_some_and(|known| known.will_wake(waker))
                        && let Some(earlier) = tasks.waker.replace(waker.clone())
                    {
                        state.wakes.discard(earlier);
                    }
                    Answer::Pending(id)
                }
                Some(Outcome::Granted(token)) => {
                    let id = RequestId::foreign(session, number);
                    Answer::Granted(Grant { id, token, losses })
                }
                Some(Outcome::Over(over)) => over.into(),
            }
        })
    }

    fn abandon(&self, id: RequestId) {
        self.input(|state| {
            if let Some(mut tasks) = state.machine.abort(number_of(id)) {
                state.wakes.discard_all(tasks.waker.take());
            }
        });
    }

    fn time_out(&self, id: RequestId) -> bool {
        self.input(|state| {
            let tasks = state.machine.time_out(number_of(id));
            let timed_out = tasks.is_some();
            state.wakes.discard_all(tasks.and_then(|mut tasks| tasks.waker.take()));
            timed_out
        })
    }

    fn release(&self, id: RequestId) -> Result<(), LossCause> {
        self.check_deadlines();
        self.input(|state| {
            // A guard's request stays until the guard is dropped, so there is one.
            let Some((loss, mut tasks)) = state.machine.release(number_of(id)) else {
                return Ok(());
            };
            state.wakes.add_all(tasks.take_wakers());
            loss.map_or(Ok(()), |loss| Err(loss.into()))
        })
    }

    fn downgrade(&self, id: RequestId, mode: Mode) -> Result<bool, DowngradeError> {
        self.check_deadlines();
        self.input(|state| {
            let number = number_of(id);
            if let Some(loss) = state.machine.loss(number) {
                return Err(DowngradeError::Lost(loss.clone().into()));
            }
            match state.machine.downgrade(number, mode) {
                true => Ok(state.machine.is_downgraded(number)),
                false => Err(DowngradeError::Upgrade),
            }
        })
    }

    fn losses(&self) -> u64 {
        self.check_deadlines();
        self.session.losses(Ordering::Acquire)
    }

    fn loss(&self, id: RequestId) -> Option<LossCause> {
        self.lock().machine.loss(number_of(id)).cloned().map(Into::into)
    }

    fn poll_watch(
        &self,
        id: RequestId,
        watched: Watched,
        watch: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), LossCause>> {
        self.check_deadlines();
        let waker = waker.clone();
        self.input(|state| {
            let number = number_of(id);
            if let Some(loss) = state.machine.loss(number) {
                return Poll::Ready(Err(loss.clone().into()));
            }
            let is_new = watch.is_none();
            let watch = *watch.get_or_insert_with(|| state.next_watch());
            // A guard's request stays until the guard is dropped.
            let Some(tasks) = state.machine.data(number) else { return Poll::Ready(Ok(())) };
            let (has_come, earlier) = tasks.watch(watch, watched, waker);
            state.wakes.discard_all(earlier);
            let has_come = match watched {
                Watched::Downgrade => state.machine.is_downgraded(number),
                Watched::Loss | Watched::Contention => has_come,
            };
            if is_new && watched == Watched::Contention {
                state.machine.watch(number);
            }
            if has_come { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
    }

    fn unwatch(&self, id: RequestId, watch: u64) {
        self.input(|state| {
            let Some(tasks) = state.machine.data(number_of(id)) else { return };
            let waker = tasks.unwatch(watch);
            let is_watched = tasks.watches_contention();
            state.wakes.discard_all(waker);
            if !is_watched {
                state.machine.unwatch(number_of(id));
            }
        });
    }

    fn end_client(&self, client: ClientId) {
        let client = client.serial();
        self.input(|state| {
            state.machine.end_client(client);
            let mut inboxes = state.inboxes.remove(&client);
            state.wakes.add_all(inboxes.iter_mut().flat_map(Inboxes::take_wakers));
        });
    }

    fn forget_client(&self, client: ClientId) {
        self.lock().machine.forget_client(client.serial());
    }

    /// Ids of a session begin with its number, which another connection may change.
    fn shown_id(&self, client: ClientId) -> ClientId {
        ClientId::foreign(self.lock().machine.session_number(), client.serial())
    }

    fn shown_request(&self, id: RequestId) -> RequestId {
        RequestId::foreign(self.lock().machine.session_number(), number_of(id))
    }

    /// Subscribes at the service when a stream begins, and unsubscribes when the last one ends.
    fn with_inboxes(&self, client: ClientId, work: &mut dyn FnMut(&mut Inboxes)) {
        let client = client.serial();
        self.input(|state| {
            let link = state.machine.link();
            if link.is_over() || *link == LinkState::Leaving || !state.machine.has_client(client) {
                return;
            }
            let inboxes = state.inboxes.entry(client).or_default();
            let before = inboxes.len();
            work(inboxes);
            let after = inboxes.len();
            if after > before {
                inboxes.mute_newest();
                state.machine.listen(client);
            } else if before > 0 && after == 0 {
                state.machine.unlisten(client);
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
        if self.lock().machine.link().is_over() { Blocking::Free } else { self.runtime.blocking() }
    }

    fn has_requests(&self, client: ClientId) -> bool {
        self.lock().machine.has_requests(client.serial())
    }

    fn connection(&self) -> (Connection, u64) {
        self.session.connection()
    }

    fn watch_connection(&self, changes: u64, waker: &Waker) {
        self.session.watch_connection(changes, waker);
    }

    fn liveness_fd(&self) -> Option<OwnedFd> {
        self.session.liveness_fd()
    }

    fn lease_left(&self) -> Option<Duration> {
        self.session.lease_left()
    }

    fn unclaimed_sessions(&self, client: ClientId) -> Reply<'_, Vec<UnclaimedSession>> {
        Box::pin(self.question(client, Question::Locks(LocksOf::Unclaimed), |reply| match reply {
            Answered::Unclaimed(all) => Some(all.into_iter().map(Into::into).collect()),
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
        Box::pin(self.question(client, Question::Locks(LocksOf::All), |reply| match reply {
            Answered::Partitions(all) => Some(all.into_iter().map(Into::into).collect()),
            _ => None,
        }))
    }

    fn query(&self, client: ClientId) -> Reply<'_, Snapshot> {
        Box::pin(self.question(client, Question::Locks(LocksOf::Partition), |reply| match reply {
            Answered::Locks { held, pending } => Some(Snapshot::received(held, pending)),
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

    fn waits(&self, client: ClientId, explained: Explained) -> Reply<'_, Waits> {
        let of = match explained {
            Explained::All => WaitsOf::Partition,
            Explained::Deadlocked => WaitsOf::Deadlocks,
        };
        Box::pin(self.question(client, Question::Waits(of), |reply| match reply {
            Answered::Waits(waits) => Some(waits.into()),
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
