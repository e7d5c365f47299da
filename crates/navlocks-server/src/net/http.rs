//! HTTP in front: the way into a WebSocket, health, and metrics.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use navlocks_wire::{self as wire, Fault, FaultCode};
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::origin;
use super::web::{self, Refusal};
use crate::audit::Act;
use crate::config::Scope;
use crate::connection::{self, ConnectionPermit, Shared, websocket_config};
use crate::dialing::{NODE, PARTY, SECRET};
use crate::hub::Outbox;
use crate::hub::{Metrics, Peer};
use crate::inspect::{self, Page, Socket, Viewer};
use crate::store::Process;

/// Where a connection came in, and what is known of it by that.
#[derive(Clone, Debug)]
pub(crate) enum Door {
    /// The Unix socket.
    Unix(Local),
    /// A TCP port; the address at the other end.
    Tcp(IpAddr),
}

/// The process at the other end of a Unix socket, as the kernel tells.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) process: Option<Process>,
    /// Its user, where users are tenants.
    pub(crate) tenant: Option<Rc<str>>,
    /// It belongs neither to the service's own user nor to root.
    pub(crate) foreign: bool,
}

impl Local {
    fn peer(&self) -> Peer {
        Peer::local().of_process(self.process).of_user(self.tenant.clone(), self.foreign)
    }
}

impl Door {
    /// Returns the address at the other end of a TCP connection.
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(address) => Some(*address),
        }
    }

    /// Returns the process at the other end of the Unix socket.
    fn pid(&self) -> Option<u32> {
        match self {
            Self::Unix(local) => local.process.map(|process| process.pid),
            Self::Tcp(_) => None,
        }
    }
}

type Answer = Response<Full<Bytes>>;

/// A connection that may come in.
struct Visitor {
    peer: Peer,
    /// Its rights, if it is a viewer.
    viewer: Option<Viewer>,
}

/// The rest of a connection that becomes a WebSocket.
type Upgrade = RefCell<Option<(OnUpgrade, Result<Visitor, Fault>)>>;

/// Serves a new connection until it is a WebSocket, which then has a task of its own.
pub(crate) async fn serve<S>(
    stream: S,
    door: Door,
    shared: Rc<Shared>,
    mut permit: ConnectionPermit,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.config.limits;
    let upgrade = Rc::new(RefCell::new(None));
    let service = service_fn(|mut request: Request<Incoming>| {
        let answer = answer(&mut request, &door, &shared, &upgrade);
        async move { Ok::<_, Infallible>(answer) }
    });
    let http = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(limits.header_bytes_max.max(8 << 10))
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let served = timeout(limits.handshake_max, Box::pin(http)).await;
    let Ok(Ok(())) = served else { return };
    let Some((upgrade, visitor)) = upgrade.borrow_mut().take() else { return };
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<S>>() else { return };
    let (stream, early) = (parts.io.into_inner(), parts.read_buf.to_vec());
    let visitor = visitor.and_then(|visitor| Ok((permit.settle(&visitor.peer)?, visitor)));
    let visitor = match visitor {
        Ok((share, Visitor { viewer: Some(viewer), .. })) => {
            let socket = Socket { stream: Box::new(stream), early };
            let served = serve_viewer(socket, viewer, shared.clone(), permit);
            spawn_local(connection::in_turn(shared.clone(), share, served));
            return;
        }
        Ok((share, Visitor { peer, viewer: None })) => Ok((share, peer)),
        Err(fault) => Err(fault),
    };
    let config = Some(websocket_config(limits));
    let stream = WebSocketStream::from_partially_read(stream, early, Role::Server, config).await;
    match visitor {
        Ok((share, peer)) => {
            let served = connection::serve(stream, peer, share.clone(), shared.clone(), permit);
            spawn_local(connection::in_turn(shared.clone(), share, served));
        }
        Err(fault) => {
            // A page cannot see why a handshake failed, so it is told in the way that it can see.
            tracing::debug!(%fault, "a connection was refused");
            shared.metrics().refused_connections.inc();
            let nothing = Outbox::new(limits.outbox_bytes_max);
            connection::close(stream, Some(fault), (VecDeque::new(), &nothing), limits).await;
        }
    }
}

/// Serves a viewer until its end, or that of the service.
async fn serve_viewer(
    socket: Socket,
    viewer: Viewer,
    shared: Rc<Shared>,
    permit: ConnectionPermit,
) {
    let Some(observer) = shared.observer.clone() else { return };
    let mut ending = shared.ending.subscribe();
    tokio::select! {
        () = observer.serve(socket, viewer, shared.inspector()) => {}
        _ = ending.wait_for(|ending| *ending) => {}
    }
    drop(permit);
}

fn answer(
    request: &mut Request<Incoming>,
    door: &Door,
    shared: &Shared,
    upgrade: &Upgrade,
) -> Answer {
    let is_head = request.method() == Method::HEAD;
    if request.method() != Method::GET && !is_head {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served here");
    }
    let path = request.uri().path().to_owned();
    let is_local = matches!(door, Door::Unix(_));
    let observer = shared.observer.as_ref().filter(|_| is_local || shared.config.dashboard);
    let upgrades = request.headers().contains_key(header::UPGRADE);
    let page = observer.filter(|_| !is_local && !upgrades).and_then(|it| it.page(&path));
    let is_guarded = path == "/metrics" || page.is_some();
    if is_guarded
        && !is_local
        && let Err(Refusal { status, sentence }) =
            web::admit(request.headers(), &shared.config.hosts)
    {
        return refuse(status, sentence);
    }
    if let Some(page) = page {
        return show(page, request.uri().query());
    }
    let subprotocols: &[&str] = match path.as_str() {
        "/healthz" | "/livez" => return sentence(StatusCode::OK, "ok"),
        "/readyz" => {
            return match shared.hubs.unready() {
                None => sentence(StatusCode::OK, "ready"),
                Some(reason) => sentence(StatusCode::SERVICE_UNAVAILABLE, &reason),
            };
        }
        "/" => wire::SUBPROTOCOLS,
        "/dashboard" | "/dashboard/act" if observer.is_some() => &[inspect::SUBPROTOCOL],
        "/metrics" => return metrics(request.headers(), door, shared),
        _ => {
            return refuse(
                StatusCode::NOT_FOUND,
                "there is /, /livez, /readyz, /healthz and /metrics",
            );
        }
    };
    match handshake(request.headers(), subprotocols) {
        Ok(_) if is_head => refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET opens a WebSocket"),
        Ok((accept, subprotocol)) => {
            let visitor = match path.as_str() {
                "/" => client(request.headers(), door, shared)
                    .map(|peer| Visitor { peer: peer.at(door.address()), viewer: None }),
                path => viewer(request.headers(), door, path, shared),
            };
            if let Err(fault) = &visitor {
                audit(&fault.message, door, shared);
            }
            let is_carried = visitor.as_ref().is_ok_and(|visitor| visitor.peer.carried);
            *upgrade.borrow_mut() = Some((hyper::upgrade::on(request), visitor));
            let mut answer = web::switch_protocols(&accept, subprotocol);
            if let (true, Some(slots)) = (is_carried, shared.hubs.slots())
                && let Ok(name) = HeaderValue::from_str(slots.name())
            {
                answer.headers_mut().insert(NODE, name);
            }
            answer
        }
        Err(answer) => {
            shared.metrics().refused_connections.inc();
            *answer
        }
    }
}

/// Writes that an access was refused.
fn audit(why: &str, door: &Door, shared: &Shared) {
    if shared.hubs.common.audit.admits(Act::Refusal, Instant::now()) {
        let from = door.address().map_or_else(|| "unix".to_owned(), |address| address.to_string());
        tracing::warn!(audit = "refusal", from, pid = door.pid(), why, "an access was refused");
    }
}

/// Answers with the metrics that the sender of these headers may read.
fn metrics(headers: &HeaderMap, door: &Door, shared: &Shared) -> Answer {
    let scope = match door {
        Door::Unix(Local { tenant: Some(tenant), foreign: true, .. }) => {
            Some(Scope::Tenant(tenant.to_string()))
        }
        Door::Unix(_) => Some(Scope::Service),
        Door::Tcp(_) => shared.access.borrow().metrics(headers),
    };
    let metrics = match scope {
        Some(Scope::Service) => shared.measure().text(&shared.hubs.common.shares.borrow()),
        Some(Scope::Tenant(tenant)) => {
            Metrics::text_of_tenant(&shared.hubs.common.shares.borrow(), &tenant)
        }
        None => {
            let text = "metrics take an access token, as locks do, or one of --metrics-token-file";
            audit(text, door, shared);
            return refuse(StatusCode::UNAUTHORIZED, text);
        }
    };
    text(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics)
}

/// Checks a WebSocket handshake. Returns what proves that it was understood, and the newest of
/// these subprotocols that the client offers.
fn handshake(
    headers: &HeaderMap,
    subprotocols: &[&'static str],
) -> Result<(String, &'static str), Box<Answer>> {
    let sentence = |sentence: &str| Box::new(refuse(StatusCode::UPGRADE_REQUIRED, sentence));
    if !has_word(headers, header::UPGRADE, "websocket")
        || !has_word(headers, header::CONNECTION, "upgrade")
    {
        let newest = subprotocols[0];
        let text = format!("this is a lock service: speak WebSocket, subprotocol {newest}");
        return Err(sentence(&text));
    }
    if !has_word(headers, header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(sentence("this service speaks version 13 of WebSocket"));
    }
    let offered: Vec<&str> = words(headers, header::SEC_WEBSOCKET_PROTOCOL).collect();
    let chosen =
        wire::choose_subprotocol(subprotocols, &offered).map_err(|text| sentence(&text))?;
    match headers.get(header::SEC_WEBSOCKET_KEY) {
        Some(key) => Ok((derive_accept_key(key.as_bytes()), chosen)),
        None => {
            let sentence = "the header Sec-WebSocket-Key is missing";
            Err(Box::new(refuse(StatusCode::BAD_REQUEST, sentence)))
        }
    }
}

/// Returns the client that wants to come in by this door, if it may.
fn client(headers: &HeaderMap, door: &Door, shared: &Shared) -> Result<Peer, Fault> {
    if let Some(carried) = headers.get(SECRET) {
        return carried_client(headers, carried.as_bytes(), shared);
    }
    let origin = origin::origin(headers, &shared.origins.borrow())?;
    if let Door::Unix(local) = door {
        return Ok(local.peer().of_origin(&origin));
    }
    let access = shared.access.borrow();
    let Some((tenant, token)) = access.tenant(headers) else {
        let text = "the service takes an access token, and this is none that it knows";
        return Err(Fault::new(FaultCode::Unauthorized, text));
    };
    Ok(Peer::remote(tenant, &origin).with_token(token))
}

/// Which client another node of the cluster carries, if it is one.
fn carried_client(headers: &HeaderMap, secret: &[u8], shared: &Shared) -> Result<Peer, Fault> {
    let is_node = shared
        .hubs
        .slots()
        .is_some_and(|slots| slots.membership.borrow().secret().as_bytes().ct_eq(secret).into());
    let party = headers.get(PARTY).and_then(|party| party.to_str().ok());
    let peer = party.filter(|_| is_node).and_then(Peer::carried);
    peer.ok_or_else(|| {
        let text = "only nodes of this cluster carry messages of others, and this is none";
        Fault::new(FaultCode::Unauthorized, text)
    })
}

/// Returns the viewer that wants to come in by this door, if it may.
fn viewer(headers: &HeaderMap, door: &Door, path: &str, shared: &Shared) -> Result<Visitor, Fault> {
    if let Door::Unix(local) = door {
        let author = match local.process {
            Some(process) => format!("local pid {}", process.pid),
            None => "the service's user".into(),
        };
        let peer = local.peer();
        if local.foreign {
            let viewer = inspect::tenant(&peer);
            return Ok(Visitor { peer, viewer: Some(viewer) });
        }
        let viewer = inspect::operator(&author, path == "/dashboard/act", &peer);
        return Ok(Visitor { peer, viewer: Some(viewer) });
    }
    let config = &shared.config;
    if !web::is_same_origin(headers, &config.hosts, config.tls.is_some()) {
        let text = "a dashboard is a page of its own service, and this is another one";
        return Err(Fault::new(FaultCode::ForbiddenOrigin, text));
    }
    let access = shared.access.borrow();
    if let Some((name, token)) = access.operator(headers) {
        let peer = Peer::remote("", "").with_token(token).at(door.address());
        let viewer = inspect::operator(name, config.dashboard_actions, &peer);
        return Ok(Visitor { peer, viewer: Some(viewer) });
    }
    let Some((tenant, token)) = access.tenant(headers) else {
        let text = "the dashboard takes an access token, and this is none that the service knows";
        return Err(Fault::new(FaultCode::Unauthorized, text));
    };
    let peer = Peer::remote(tenant, "").with_token(token).at(door.address());
    let viewer = inspect::tenant(&peer);
    Ok(Visitor { peer, viewer: Some(viewer) })
}

/// Answers with a file of the dashboard.
fn show(Page { headers, text }: Page, query: Option<&str>) -> Answer {
    if query.is_some() {
        let sentence = "nothing is read from a query string: a token belongs behind the # sign";
        return refuse(StatusCode::BAD_REQUEST, sentence);
    }
    let mut answer = Response::new(Full::from(text));
    for &(name, value) in headers.iter().chain([&("connection", "close")]) {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Whether a header that lists words has this one.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    words(headers, name).any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns the words of a header that is a list.
fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// A refusal in one sentence.
fn refuse(status: StatusCode, text: &str) -> Answer {
    sentence(status, text)
}

/// An answer in one sentence.
fn sentence(status: StatusCode, sentence: &str) -> Answer {
    text(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

fn text(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // One question a connection: what stays open is a WebSocket.
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::UPGRADE_REQUIRED {
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    answer
}
