//! The socket of a viewer: a question, its answer, the next question.

use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use navlocks_server::inspect::{Inspector, Socket, Stream, Viewer};
use navlocks_wire::{self as wire, Fault, FaultCode};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::acting::act;
use crate::jobs::Jobs;
use crate::shown::Shown;
use crate::view::{Asked, View};

/// The longest question.
const QUESTION_BYTES_MAX: usize = 64 << 10;

/// A viewer in silence is asked for a sign of life after this time. It is gone if none comes within
/// the same time again.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A page that takes nothing for so long is gone.
const WRITE_MAX: Duration = Duration::from_secs(30);

type Viewed = WebSocketStream<Box<dyn Stream>>;

/// Serves a viewer until its end.
pub(crate) async fn serve(
    jobs: Rc<Jobs>,
    Socket { stream, early }: Socket,
    viewer: Viewer,
    service: Inspector,
) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(QUESTION_BYTES_MAX))
        .max_frame_size(Some(QUESTION_BYTES_MAX));
    let role = Role::Server;
    let mut page = WebSocketStream::from_partially_read(stream, early, role, Some(config)).await;
    let viewer = Rc::new(viewer);
    while let Some(text) = receive(&mut page).await {
        let text = match answer(&jobs, &text, &viewer, &service).await {
            Ok(text) => text,
            Err(fault) => {
                send(&mut page, wire::write(&wire::ToClient::Error(fault))).await;
                let _closed = timeout(WRITE_MAX, page.close(None)).await;
                return;
            }
        };
        if !send(&mut page, text).await {
            return;
        }
    }
}

/// Returns the next question; none at the end of the connection.
async fn receive(page: &mut Viewed) -> Option<String> {
    let mut is_asked = false;
    loop {
        match timeout(SILENCE_MAX, page.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => return Some(text.to_string()),
            // The library answers a ping by itself.
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => is_asked = false,
            Ok(_) => return None,
            Err(_) if is_asked => return None,
            Err(_) => {
                is_asked = true;
                let ping = page.send(Message::Ping(Vec::new().into()));
                timeout(WRITE_MAX, ping).await.ok()?.ok()?;
            }
        }
    }
}

/// Returns the answer to a question as text.
async fn answer(
    jobs: &Jobs,
    text: &str,
    viewer: &Rc<Viewer>,
    service: &Inspector,
) -> Result<String, Fault> {
    if !service.knows(viewer) {
        let text = "the access token was removed meanwhile";
        return Err(Fault::new(FaultCode::Unauthorized, text));
    }
    let Asked { id, view } = wire::read(text)?;
    let now = Instant::now();
    jobs.views.begin_recording(service, now);
    let shown = match view {
        View::Act(action) => act(&jobs.views, service, viewer, &action, now).map(Shown::Acted),
        view => jobs.ask(viewer.clone(), view).await,
    };
    let max = service.limits().answer_bytes_max;
    let text = shown.and_then(|shown| {
        wire::write_within(&shown, max).ok_or_else(|| {
            let text = format!("the answer has more than {max} bytes, which is the limit");
            Fault::new(FaultCode::Limit, text)
        })
    });
    Ok(match text {
        Ok(text) => format!(r#"{{"id":{id},"shown":{text}}}"#),
        Err(fault) => format!(r#"{{"id":{id},"refused":{}}}"#, wire::write(&fault)),
    })
}

/// Sends a message. Returns false if the page is gone.
async fn send(page: &mut Viewed, text: String) -> bool {
    matches!(timeout(WRITE_MAX, page.send(Message::text(text))).await, Ok(Ok(())))
}
