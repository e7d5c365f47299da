//! A viewer at the level of messages.

use navlocks_dashboard::Dashboard;
use navlocks_dashboard::shown::Shown;
use navlocks_server::Config;
use navlocks_server::inspect::SUBPROTOCOL;
use navlocks_wire::{self as wire, Fault};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::client::{Stream, handshake};
use crate::running::Running;

/// Starts a service with a dashboard.
pub(crate) fn serve(change: impl FnOnce(&mut Config)) -> Running {
    let change = |config: &mut Config| {
        config.dashboard = true;
        change(config);
    };
    Running::attached(change, |service| service.with_dashboard(Dashboard::default()))
}

/// A connection of a viewer.
pub(crate) struct Viewer(WebSocket<Box<dyn Stream>>);

/// A message of the service.
#[derive(Debug, Deserialize)]
pub(crate) struct Received {
    pub(crate) id: Option<u64>,
    pub(crate) shown: Option<Shown>,
    pub(crate) refused: Option<Fault>,
    pub(crate) error: Option<Fault>,
}

impl Viewer {
    pub(crate) fn new(stream: impl Stream + 'static, path: &str) -> Self {
        let stream: Box<dyn Stream> = Box::new(stream);
        let mut request = handshake();
        *request.uri_mut() = format!("ws://localhost{path}").parse().expect("an address");
        let protocol = HeaderValue::from_static(SUBPROTOCOL);
        request.headers_mut().insert("Sec-WebSocket-Protocol", protocol);
        match tungstenite::client::client(request, stream) {
            Ok((socket, _)) => Self(socket),
            Err(error) => panic!("the handshake failed: {error}"),
        }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("the service listens");
    }

    pub(crate) fn receive(&mut self) -> Received {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return wire::read(&text).expect("a message"),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("the service said nothing: {other:?}"),
            }
        }
    }

    fn ask(&mut self, view: &str) -> Received {
        self.send(&format!(r#"{{"id":1,"view":{view}}}"#));
        let received = self.receive();
        assert_eq!(received.id, Some(1), "{received:?}");
        received
    }

    /// Returns the answer to a question.
    pub(crate) fn shown(&mut self, view: &str) -> Shown {
        let received = self.ask(view);
        received.shown.unwrap_or_else(|| panic!("not a view: {:?}", received.refused))
    }

    /// Returns why a question is refused.
    pub(crate) fn refused(&mut self, view: &str) -> Fault {
        let received = self.ask(view);
        received.refused.unwrap_or_else(|| panic!("not refused: {:?}", received.shown))
    }

    /// Returns why the service ends the connection.
    pub(crate) fn error(&mut self) -> Fault {
        self.receive().error.expect("an error")
    }
}
