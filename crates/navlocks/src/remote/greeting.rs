//! The greeting: the hello of a session over a new connection, and the welcome.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Sink, Stream};
use tokio_tungstenite::tungstenite::{self, Message};

use super::clock;
use super::connect::ConnectError;
use super::dial::{Dialed, Link, dial, open};
use super::driver::Failure;
use super::session::Session;
use navlocks_client::Route;
use navlocks_wire::{self as wire, Fault, FaultCode, ToClient, ToService, Welcome};

/// For the service to answer the handshake and the hello.
pub(super) const WELCOME_MAX: Duration = Duration::from_secs(10);

/// Connects, says hello, and hears the welcome.
pub(super) async fn greet(session: &Session, route: &mut Route) -> Result<Link, Failure> {
    let limit = route.limit(session.lease_length());
    let dialed = dial(&session.options, &route.target().url, limit).await;
    let dialed = dialed.map_err(|error| Failure { error, greeted: false })?;
    greet_over(session, route, dialed, false).await
}

/// Says hello over this socket to the target, with the requests so far if they are `early`.
pub(super) async fn greet_over(
    session: &Session,
    route: &mut Route,
    dialed: Dialed,
    early: bool,
) -> Result<Link, Failure> {
    let lease = session.lease_length();
    let within = session.options.answers_within.unwrap_or(WELCOME_MAX).min(WELCOME_MAX);
    let leased = lease.filter(|_| route.is_cluster() && session.is_resumable());
    let within = within.min(route.welcome_limit(leased, clock::now()).unwrap_or(within));
    let limit = route.limit(lease);
    let failed = |greeted| move |error| Failure { error, greeted };
    let first_messages = || {
        let said = clock::now();
        let hello = route.complete(session.hello(), said);
        let mut texts = vec![wire::write(&ToService::Hello(hello.clone()))];
        if early {
            texts.extend(session.early_requests());
        }
        (said, hello, texts)
    };
    let (mut sent, mut first) = (None, Vec::new());
    if early && dialed.takes_early() {
        let (said, hello, texts) = first_messages();
        (sent, first) = (Some((said, hello)), texts);
    }
    let until = tokio::time::Instant::now() + within;
    // A process that is stopped takes connections, and opens no WebSocket.
    let limit = if route.is_cluster() { limit.min(within) } else { within };
    let opened = tokio::time::timeout(limit, open(dialed, first)).await;
    let opened = opened.unwrap_or(Err(ConnectError::Silent { within: limit }));
    let mut link = opened.map_err(failed(false))?;
    let greeted = async {
        let (said, hello) = match sent {
            Some(sent) => sent,
            None => {
                let (said, hello, texts) = first_messages();
                send(&mut link, texts).await.map_err(broken)?;
                (said, hello)
            }
        };
        let welcome = first_answer(&mut link).await?;
        let (epoch, known) = (welcome.epoch, session.epoch());
        if epoch < known {
            return Err(outdated(epoch, known));
        }
        session.welcome(welcome, &hello, said);
        Ok(())
    };
    let greeted = tokio::time::timeout_at(until, greeted).await;
    greeted.unwrap_or(Err(ConnectError::Silent { within })).map_err(failed(true))?;
    route.reached();
    Ok(link)
}

async fn send(link: &mut Link, texts: Vec<String>) -> Result<(), tungstenite::Error> {
    let mut link = Pin::new(link);
    for text in texts {
        poll_fn(|cx| link.as_mut().poll_ready(cx)).await?;
        link.as_mut().start_send(Message::text(text))?;
    }
    poll_fn(|cx| link.as_mut().poll_flush(cx)).await
}

async fn first_answer(link: &mut Link) -> Result<Welcome, ConnectError> {
    let mut link = Pin::new(link);
    loop {
        let message = match poll_fn(|cx| link.as_mut().poll_next(cx)).await {
            Some(Ok(Message::Text(text))) => wire::read(&text),
            Some(Ok(Message::Close(_))) | None => {
                return Err(broken(tungstenite::Error::ConnectionClosed));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(broken(error)),
        };
        return match message {
            Ok(ToClient::Welcome(welcome)) if welcome.version == wire::VERSION => Ok(welcome),
            Ok(ToClient::Welcome(welcome)) => Err(other_version(welcome.version)),
            Ok(ToClient::Error(fault)) => Err(ConnectError::Refused(fault)),
            Ok(other) => Err(ConnectError::Handshake(format!("it began with {other:?}"))),
            Err(fault) => Err(ConnectError::Handshake(fault.to_string())),
        };
    }
}

fn outdated(epoch: u64, known: u64) -> ConnectError {
    ConnectError::Handshake(format!(
        "its epoch is {epoch}, and a service of epoch {known} was here before: end the older one, or restore its state"
    ))
}

fn other_version(theirs: u32) -> ConnectError {
    let ours = wire::VERSION;
    let sentence =
        format!("the service speaks version {theirs} of the protocol, this client {ours}");
    ConnectError::Refused(Fault::new(FaultCode::Version, sentence))
}

fn broken(error: tungstenite::Error) -> ConnectError {
    ConnectError::Unreachable(match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::other(other),
    })
}
