//! A client of nodes, at the level of messages.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use crate::nodes::{Node, PATIENCE};

/// A connection to a node.
pub(crate) struct Client(WebSocket<TcpStream>);

impl Client {
    pub(crate) fn dial(node: &Node, path: &str, headers: &[(&'static str, &str)]) -> Self {
        Self::dial_as(navlocks_wire::SUBPROTOCOL, node, path, headers)
    }

    fn dial_as(
        protocol: &'static str,
        node: &Node,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Self {
        let mut request = format!("{}{path}", node.url).into_client_request().expect("an address");
        let protocol = HeaderValue::from_static(protocol);
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let address = node.url.strip_prefix("ws://").expect("an address");
        let stream = TcpStream::connect(address).expect("the node listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(client(request, stream).expect("a handshake").0)
    }

    /// A session that the node carries if it has to.
    pub(crate) fn carried(node: &Node, partition: &str) -> Self {
        loop {
            let mut client = Self::dial(node, "/", &[]);
            client.send(&json!({"hello": {"carry": true, "partition": partition}}));
            let answer = client.receive();
            if answer["welcome"]["cluster"] == true {
                return client;
            }
            // The node may not have seen the last move yet.
            assert_eq!(answer["error"]["code"], "moved", "{answer}");
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).expect("the node reads");
    }

    pub(crate) fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().expect("the node writes") {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    /// Returns the next message, if one comes within this time.
    pub(crate) fn receive_within(&mut self, time: Duration) -> Option<Value> {
        self.0.get_ref().set_read_timeout(Some(time)).expect("a socket");
        let received = match self.0.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).expect("JSON")),
            Ok(Message::Close(_)) => Some(json!("close")),
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => None,
            other => panic!("neither a message nor silence: {other:?}"),
        };
        self.0.get_ref().set_read_timeout(Some(PATIENCE)).expect("a socket");
        received
    }

    /// Waits for a grant. Returns its fencing token.
    pub(crate) fn granted(&mut self) -> u64 {
        loop {
            // The session before may not have ended yet.
            let message = self.receive();
            match message.get("pending") {
                Some(_) => continue,
                None => {
                    let token = message["granted"]["token"].as_u64();
                    return token.unwrap_or_else(|| panic!("no grant: {message}"));
                }
            }
        }
    }

    /// A session at the owner of a partition.
    pub(crate) fn owned(node: &Node, partition: &str) -> Self {
        let mut client = Self::dial(node, "/", &[]);
        client.send(&json!({"hello": {"partition": partition}}));
        let answer = client.receive();
        assert_eq!(answer["welcome"]["cluster"], true, "{answer}");
        client
    }

    /// A dashboard with the rights of this token.
    pub(crate) fn dashboard(node: &Node, token: &str) -> Self {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        Self::dial_as(navlocks_server::inspect::SUBPROTOCOL, node, "/dashboard", &headers)
    }

    /// Returns the reply to a question.
    pub(crate) fn ask(&mut self, question: &Value) -> Value {
        self.send(&json!({"ask": {"id": 1, "question": question}}));
        loop {
            let mut message = self.receive();
            if message.get("answer").is_some() {
                return message["answer"]["reply"].take();
            }
        }
    }

    /// Returns the data of a view.
    pub(crate) fn view(&mut self, view: &Value) -> Value {
        self.send(&json!({"id": 1, "view": view}));
        let mut reply = self.receive();
        let shown = reply["shown"].as_object_mut().and_then(|it| it.values_mut().next());
        shown.map(Value::take).unwrap_or_else(|| panic!("not a view: {reply}"))
    }

    /// Requests a name and waits for the lock.
    pub(crate) fn hold(&mut self, id: u64, name: &str) {
        self.send(&json!({"request": {"id": id, "names": [name]}}));
        self.granted();
    }

    /// Requests a name that is held.
    pub(crate) fn wait_within(&mut self, outer: u64, id: u64, name: &str) {
        self.send(&json!({"request": {"id": id, "names": [name], "within": outer}}));
        assert_eq!(self.receive()["pending"]["id"], id);
    }

    pub(crate) fn wait_for(&mut self, id: u64, name: &str) {
        self.send(&json!({"request": {"id": id, "names": [name]}}));
        assert_eq!(self.receive()["pending"]["id"], id);
    }
}
