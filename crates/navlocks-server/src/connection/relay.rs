//! Carries the messages of a client that cannot reach the node which owns its locks.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::OptionFuture;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use navlocks_wire::{self as wire, Fault, ToClient};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{Shared, websocket_config};
use crate::dialing::{Link, PARTY, SECRET};
use crate::hub::Peer;

/// A side that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(30);

/// Messages that are carried in one direction before the other has its turn.
const BATCH: usize = 64;

/// The way to the owner of a client's locks.
pub(super) struct Way {
    link: Link,
    owner: String,
    /// After this time the client tries to reach the owner again.
    home: Option<Duration>,
}

/// Connects to the owner for a client, and sends its hello. Returns none if the owner cannot be
/// reached from here either.
pub(super) async fn connect(
    shared: &Shared,
    peer: &Rc<Peer>,
    owner: String,
    hello: Utf8Bytes,
    home: Option<Duration>,
) -> Option<Way> {
    let slots = shared.hubs.slots()?;
    let opened = async {
        let secret = slots.membership.borrow().secret();
        let headers = [(SECRET, secret), (PARTY, peer.carried_text())];
        // The owner sends answers that are longer than any message of a client.
        let config = websocket_config(&shared.config.limits);
        let config = config.max_message_size(None).max_frame_size(None);
        let (mut link, _) = shared.dialer.open(&owner, &headers, config).await?;
        link.send(Message::Text(hello)).await.map_err(io::Error::other)?;
        Ok::<_, io::Error>(link)
    };
    match opened.await {
        Ok(link) => {
            slots.reached(&owner);
            Some(Way { link, owner, home })
        }
        Err(error) => {
            tracing::warn!(owner, %error, "the owner of a client's locks cannot be reached");
            slots.note_unreachable(owner);
            None
        }
    }
}

/// Carries messages both ways until one side ends. Each side learns how the other one did: a side
/// that breaks breaks the other one too.
pub(super) async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    mut client: WebSocketStream<S>,
    Way { link: mut owner, owner: address, home }: Way,
) {
    let is_over = |moved: Result<bool, Error>| !matches!(moved, Ok(true));
    let mut home = pin!(OptionFuture::from(home.map(sleep)));
    loop {
        let over = tokio::select! {
            Some(()) = &mut home => {
                // The owner keeps the session until the client resumes it there, or here again.
                let text = wire::write(&ToClient::Error(Fault::moved(Some(address))));
                let _sent = timely(client.send(Message::text(text))).await;
                let _closed = timely(client.close(None)).await;
                return;
            }
            message = client.next() => is_over(pass(message, &mut client, &mut owner).await),
            message = owner.next() => is_over(pass(message, &mut owner, &mut client).await),
        };
        if over {
            return;
        }
    }
}

/// Passes on this message and those that have arrived behind it. Returns false after the last one.
async fn pass<F, T>(
    first: Option<Result<Message, Error>>,
    from: &mut WebSocketStream<F>,
    to: &mut WebSocketStream<T>,
) -> Result<bool, Error>
where
    F: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut next = first;
    let mut answers = false;
    for _ in 0..BATCH {
        match next {
            Some(Ok(Message::Text(text))) => timely(to.feed(Message::Text(text))).await?,
            // The library answers a ping by itself, at the next flush.
            Some(Ok(Message::Ping(_))) => answers = true,
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Binary(bytes))) => timely(to.feed(Message::Binary(bytes))).await?,
            Some(Ok(Message::Close(close))) => {
                timely(to.send(Message::Close(close))).await?;
                // Both sides see the end of the other.
                let _closed = timely(from.flush()).await;
                return Ok(false);
            }
            // The messages before the end count.
            Some(Err(error)) => {
                timely(to.flush()).await?;
                return Err(error);
            }
            None => {
                timely(to.flush()).await?;
                return Ok(false);
            }
        }
        next = match from.next().now_or_never() {
            Some(next) => next,
            None => break,
        };
    }
    if answers {
        timely(from.flush()).await?;
    }
    timely(to.flush()).await?;
    Ok(true)
}

/// Sends within [`WRITE_MAX`]. Only a side that does not take it at once costs a look at the clock.
async fn timely(sending: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let mut sending = pin!(sending);
    let at_once = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    match at_once {
        Poll::Ready(sent) => sent,
        Poll::Pending => {
            let late = |_| Error::Io(io::ErrorKind::TimedOut.into());
            timeout(WRITE_MAX, sending).await.map_err(late)?
        }
    }
}
