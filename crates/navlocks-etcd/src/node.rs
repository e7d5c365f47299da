//! A node as the service sees it: its membership, which begins anew whenever it has ended.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use navlocks_server::cluster::{self, Epoch, Membership, Task};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::clock::{BootClock, Clock};
use crate::config::Config;
use crate::error::Error;
use crate::members::driver::Event;
use crate::members::inspection::ClusterView;
use crate::members::member::Member;

/// Between two attempts to join again, at first and later.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A node of a cluster in etcd.
#[derive(Debug)]
pub struct Node {
    slots: u32,
    address: String,
    secret: watch::Receiver<String>,
    events: mpsc::UnboundedReceiver<Event>,
    commands: mpsc::UnboundedSender<Command>,
    shown: watch::Receiver<Shown>,
    node_lease: Duration,
    task: JoinHandle<()>,
}

/// The last reading of the cluster, and when it came.
#[derive(Debug)]
struct Shown {
    view: Arc<ClusterView>,
    at: Instant,
}

impl Shown {
    fn now(view: Arc<ClusterView>) -> Self {
        Self { view, at: Instant::now() }
    }
}

#[derive(Debug)]
enum Command {
    Give(u32, oneshot::Sender<Result<(), Error>>),
    Raise(Epoch),
    Leave(oneshot::Sender<Result<(), Error>>),
}

impl Node {
    /// Joins the cluster. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// Each cause has an error of its own.
    pub async fn join(config: Config) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(BootClock);
        let member = Member::join(config.clone(), clock.clone()).await?;
        let (slots, address, node_lease) =
            (config.slots, config.advertise.clone(), config.node_lease);
        let (secrets, secret) = watch::channel(member.secret().to_owned());
        let (event_sender, events) = mpsc::unbounded_channel();
        let (commands, receiver) = mpsc::unbounded_channel();
        let (sender, shown) = watch::channel(Shown::now(Arc::default()));
        let life = Life {
            config,
            clock,
            events: event_sender,
            commands: receiver,
            shown: sender,
            secrets,
        };
        let task = tokio::spawn(life.run(member));
        Ok(Self { slots, address, secret, events, commands, shown, node_lease, task })
    }

    fn command(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Command,
    ) -> Task<io::Result<()>> {
        let (sender, receiver) = oneshot::channel();
        // A task that has ended drops the command, and with it the sender.
        let _sent = self.commands.send(command(sender));
        Box::pin(async move {
            let answer = receiver.await.unwrap_or(Err(Error::Ended));
            answer.map_err(io::Error::other)
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Membership for Node {
    fn slots(&self) -> u32 {
        self.slots
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn secret(&self) -> String {
        self.secret.borrow().clone()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<cluster::Event>> {
        loop {
            return Poll::Ready(match self.events.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Event::Gained(slot, inherited))) => {
                    Some(cluster::Event::Gained(Box::new(slot), inherited))
                }
                Poll::Ready(Some(Event::Lost(slot, _))) => Some(cluster::Event::Lost(slot)),
                Poll::Ready(Some(Event::Give { slot, to })) => {
                    Some(cluster::Event::Give { slot, to })
                }
                Poll::Ready(Some(Event::Moved)) => Some(cluster::Event::Moved),
                // Its slots are lost already, and the node joins again.
                Poll::Ready(Some(Event::Ended(_))) => continue,
                Poll::Ready(None) => None,
            });
        }
    }

    fn owner(&self, slot: u32) -> Option<String> {
        self.shown.borrow().view.slots.get(slot as usize)?.address.clone()
    }

    fn is_deaf(&self) -> bool {
        // A third of the lease lies between two readings.
        self.shown.borrow().at.elapsed() > self.node_lease / 2
    }

    fn give(&self, slot: u32) -> Task<io::Result<()>> {
        self.command(|answer| Command::Give(slot, answer))
    }

    fn raise_epochs(&self, seen: u64) {
        let _sent = self.commands.send(Command::Raise(Epoch(seen)));
    }

    fn leave(&mut self) -> Task<io::Result<()>> {
        self.command(Command::Leave)
    }
}

/// The task of a node, through all its memberships.
struct Life {
    config: Config,
    clock: Arc<dyn Clock>,
    events: mpsc::UnboundedSender<Event>,
    commands: mpsc::UnboundedReceiver<Command>,
    shown: watch::Sender<Shown>,
    /// Another one after the record of the cluster was lost.
    secrets: watch::Sender<String>,
}

impl Life {
    async fn run(mut self, mut member: Member) {
        loop {
            self.secrets.send_replace(member.secret().to_owned());
            let Some(error) = self.take_part(&mut member).await else { return };
            tracing::error!(%error, "this node is no part of the cluster any more, and joins again");
            self.shown.send_replace(Shown::now(Arc::default()));
            self.config.known = Some(member.known(&error));
            drop(member);
            match self.join_again().await {
                Some(again) => member = again,
                None => return,
            }
        }
    }

    /// Takes part until the membership ends. Returns why, or none if the node has left.
    async fn take_part(&mut self, member: &mut Member) -> Option<Error> {
        let mut views = member.views();
        loop {
            tokio::select! {
                event = member.next_event() => match event {
                    Some(Event::Ended(error)) => return Some(error),
                    Some(event) => self.events.send(event).ok()?,
                    None => return Some(Error::Ended),
                },
                Ok(()) = views.changed() => {
                    let view = views.borrow_and_update().clone();
                    let before = self.shown.send_replace(Shown::now(view.clone()));
                    if !view.has_owners_of(&before.view) {
                        self.events.send(Event::Moved).ok()?;
                    }
                }
                command = self.commands.recv() => match command? {
                    Command::Give(slot, answer) => _ = answer.send(member.give(slot).await),
                    Command::Raise(seen) => {
                        if let Err(error) = member.raise_epochs(seen).await {
                            tracing::warn!(%error, "epochs could not be raised");
                        }
                    }
                    Command::Leave(answer) => {
                        let _ = answer.send(member.leave().await);
                        return None;
                    }
                },
            }
        }
    }

    /// Joins again, however long it takes. Returns none if the node is to leave.
    async fn join_again(&mut self) -> Option<Member> {
        let mut pause = PAUSE_MIN;
        loop {
            match Member::join(self.config.clone(), self.clock.clone()).await {
                Ok(member) => {
                    tracing::info!("this node is part of the cluster again");
                    return Some(member);
                }
                Err(error) => tracing::warn!(%error, "this node cannot join its cluster yet"),
            }
            let waiting = sleep(pause);
            tokio::pin!(waiting);
            loop {
                tokio::select! {
                    () = &mut waiting => break,
                    command = self.commands.recv() => match command? {
                        // Nothing is owned, so there is nothing to give.
                        Command::Give(_, answer) => _ = answer.send(Ok(())),
                        Command::Raise(_) => {}
                        Command::Leave(answer) => {
                            let _ = answer.send(Ok(()));
                            return None;
                        }
                    },
                }
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
