//! Parking: a node keeps the hello of a client while the slot of its locks has no owner in reach.
//!
//! Otherwise all clients of a dead node would dial again and again until its slots have moved.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::Stream as _;
use navlocks_wire::{Fault, FaultCode, Hello};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::tungstenite::Message;

use super::{Connection, End, Taken, relay};

/// The longest time for a hello to wait. A client waits about as long for its welcome.
const PARKED_MAX: Duration = Duration::from_secs(10);

/// The same at a node that reads nothing from etcd: another node may have taken the slot.
const DEAF_MAX: Duration = Duration::from_secs(1);

/// How often a parked hello looks without news: nothing tells that an owner may send again.
const LOOK: Duration = Duration::from_millis(500);

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Serves a connection until its end. Its hello waits here while no node in reach owns its
    /// locks.
    pub(super) async fn run(&mut self) -> End {
        let mut since = None;
        loop {
            let (hello, owner) = match poll_fn(|cx| self.poll(cx)).await {
                End::Elsewhere { hello, owner } => (hello, owner),
                end => return end,
            };
            if let Some(owner) = owner {
                let (text, home) = (hello.clone(), self.home);
                let way = relay::connect(&self.shared, &self.peer, owner, text, home).await;
                if let Some(way) = way {
                    return End::Carried(Box::new(way));
                }
            }
            self.ahead.push_front(Message::Text(hello));
            let since = *since.get_or_insert_with(Instant::now);
            if let Some(end) = self.park(since).await {
                return end;
            }
        }
    }

    /// Refuses the hello of a client that another node serves, or leads it on.
    pub(super) fn lead_on(&mut self, hello: &Hello, fault: Fault) -> Result<Taken, Fault> {
        self.home = hello.home_ms.map(Duration::from_millis);
        let Some(slots) = self.shared.hubs.slots() else { return Err(fault) };
        let owner = fault.to.as_deref().filter(|_| fault.code == FaultCode::Moved);
        let owner = match owner {
            // Its node names the owner that it sees to the client.
            Some(_) if self.peer.carried => return Err(fault),
            Some(owner) if hello.carry || is_unreachable(hello, owner) => {
                Some(owner.to_owned()).filter(|owner| slots.may_dial(owner))
            }
            Some(_) => return Err(fault),
            None => None,
        };
        Ok(Taken::Elsewhere { owner })
    }

    /// Waits until the owner of a slot may have changed. The first wait of its hello began at
    /// `since`. Returns the end of a wait in vain.
    async fn park(&mut self, since: Instant) -> Option<End> {
        let shared = self.shared.clone();
        let slots = shared.hubs.slots()?;
        let max = if slots.membership.borrow().is_deaf() { DEAF_MAX } else { PARKED_MAX };
        shared.metrics().parked.inc();
        let end = select! {
            () = slots.news.notified() => None,
            () = sleep(LOOK) => None,
            () = sleep_until(since + max) => Some(End::Fault(Fault::moved(None))),
            () = self.closed_by_peer() => Some(End::Broken),
        };
        shared.metrics().parked.dec();
        end
    }

    /// Waits for the end of the connection. Keeps the first message that comes before.
    async fn closed_by_peer(&mut self) {
        poll_fn(|cx| {
            // Its hello, and one message more.
            if self.ahead.len() > 1 {
                return Poll::Pending;
            }
            match Pin::new(&mut self.stream).poll_next(cx) {
                Poll::Ready(Some(Ok(Message::Close(_)) | Err(_)) | None) => Poll::Ready(()),
                Poll::Ready(Some(Ok(message))) => {
                    self.ahead.push_back(message);
                    Poll::Pending
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }
}

/// Returns true if the client could not reach this node.
fn is_unreachable(hello: &Hello, node: &str) -> bool {
    let plain = |address: &str| address.trim_end_matches('/').to_owned();
    hello.unreachable.iter().any(|it| plain(it) == plain(node))
}
