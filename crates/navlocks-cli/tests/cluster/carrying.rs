//! A node carries the messages of a client that cannot reach the owner of its locks.

use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::nodes::{Node, etcd, three};

struct Client(WebSocket<TcpStream>);

impl Client {
    fn dial(node: &Node, headers: &[(&'static str, &str)]) -> Self {
        let mut request = node.url.as_str().into_client_request().expect("an address");
        let protocol = HeaderValue::from_static(navlocks_wire::SUBPROTOCOL);
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let address = node.url.strip_prefix("ws://").expect("an address");
        let stream = TcpStream::connect(address).expect("the node listens");
        Self(client(request, stream).expect("a handshake").0)
    }

    /// A session that the node carries if it has to.
    fn carried(node: &Node) -> Self {
        loop {
            let mut client = Self::dial(node, &[]);
            client.send(&json!({"hello": {"version": 1, "carry": true}}));
            let answer = client.receive();
            if answer["welcome"]["cluster"] == true {
                return client;
            }
            // The node may not have seen the last move yet.
            assert_eq!(answer["error"]["code"], "moved", "{answer}");
        }
    }

    fn send(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).expect("the node reads");
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().expect("the node writes") {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }

    /// Waits for a grant. Returns its fencing token.
    fn granted(&mut self) -> u64 {
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
}

#[test]
fn client_is_served_by_every_node_and_all_grant_one_lock() {
    let etcd = etcd();
    let nodes = three(&etcd);
    let mut tokens = Vec::new();
    let mut moved = 0;
    for node in &nodes {
        let mut plain = Client::dial(node, &[]);
        plain.send(&json!({"hello": {"version": 1}}));
        moved += usize::from(plain.receive()["error"]["code"] == "moved");
        let mut carried = Client::carried(node);
        carried.send(&json!({"request": {"id": 1, "names": ["x"]}}));
        tokens.push(carried.granted());
        carried.send(&json!("bye"));
    }
    assert_eq!(moved, 2, "one node owns the slot, and the others send its clients there");
    assert!(tokens.is_sorted() && tokens[0] < tokens[2], "one owner grants: {tokens:?}");
}

#[test]
fn client_that_pretends_to_be_a_node_is_refused() {
    let etcd = etcd();
    let node = Node::start(&etcd, "n1");
    // The party ["", "", true]: that of the service's own user.
    let headers = [("navlocks-cluster", "guessed"), ("navlocks-party", "WyIiLCIiLHRydWVd")];
    let mut client = Client::dial(&node, &headers);
    assert_eq!(client.receive()["error"]["code"], "unauthorized");
}
