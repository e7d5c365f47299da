//! How the service closes a connection: what is left to say, the reason, and a short wait until the
//! other side has it.

use std::collections::VecDeque;
use std::task::Waker;

use futures_util::SinkExt as _;
use navlocks_wire::{self as wire, Fault, FaultCode, ToClient};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::config::Limits;
use crate::hub::{Frame, Next, Outbox};

/// The longest reason that fits into a close frame.
const REASON_BYTES_MAX: usize = 123;

/// Writes what is left and the reason, if the service has one, and closes. Never waits for long,
/// and not at all for one that does not read. Whether the other side has closed as well, and so has
/// read everything.
pub(crate) async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: WebSocketStream<S>,
    fault: Option<Fault>,
    left: (VecDeque<Frame>, &Outbox),
    limits: &Limits,
) -> bool {
    let slow = fault.as_ref().is_some_and(|fault| fault.code == FaultCode::SlowReader);
    let patience = if slow { std::time::Duration::ZERO } else { limits.closing_max };
    let closed = timeout(patience, async {
        let said = say(&mut stream, fault, left).await.is_ok();
        // A socket that is closed with something unread in it takes back what it has sent.
        let mut rest = vec![0; 1 << 10];
        let stream = stream.get_mut();
        let _broken = stream.shutdown().await;
        loop {
            match stream.read(&mut rest).await {
                Ok(0) => return said,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    });
    closed.await.unwrap_or(false)
}

async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut WebSocketStream<S>,
    fault: Option<Fault>,
    (mut begun, outbox): (VecDeque<Frame>, &Outbox),
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let slow = fault.as_ref().is_some_and(|fault| fault.code == FaultCode::SlowReader);
    let withheld = slow || !outbox.may_send(Waker::noop());
    // No other message may stand between the pieces of one.
    let halved = withheld && begun.front().is_some_and(Frame::is_begun);
    if !withheld {
        let mut frames = VecDeque::new();
        outbox.take(&mut frames);
        begun.append(&mut frames);
        for mut frame in begun {
            loop {
                let Next { message, last, .. } = frame.next();
                stream.feed(message).await?;
                if last {
                    break;
                }
                stream.flush().await?;
            }
        }
    }
    let close = match fault {
        None => CloseFrame { code: CloseCode::Normal, reason: "".into() },
        Some(fault) => {
            let (code, reason) = (close_code(fault.code), reason(&fault.message));
            if !halved {
                stream.feed(Message::text(wire::write(&ToClient::Error(fault)))).await?;
            }
            CloseFrame { code, reason: reason.into() }
        }
    };
    stream.feed(Message::Close(Some(close))).await?;
    stream.flush().await
}

fn close_code(code: FaultCode) -> CloseCode {
    match code {
        FaultCode::BadMessage | FaultCode::BadState | FaultCode::Version => CloseCode::Protocol,
        FaultCode::Limit => CloseCode::Size,
        FaultCode::ShuttingDown => CloseCode::Away,
        FaultCode::Internal => CloseCode::Error,
        _ => CloseCode::Policy,
    }
}

fn reason(message: &str) -> String {
    let mut end = message.len().min(REASON_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}
