//! The peer of a connection, as far as the service knows it.

use std::net::IpAddr;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::config::TokenId;
use crate::store::Process;

/// The other end of a connection. Its rights follow from this, and from nothing that it says in a
/// message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The tenant of the token that it showed, or its user over a Unix socket whose tenants are
    /// users; otherwise empty.
    pub(crate) tenant: Rc<str>,
    /// The web origin of a browser's page; empty for programs.
    pub(crate) origin: Rc<str>,
    /// Its process, where the kernel tells.
    pub(crate) process: Option<Process>,
    /// Whether the end of its connection is known to be its own end.
    pub(crate) local: bool,
    /// Another user than the service's own, over a Unix socket that several share.
    pub(crate) foreign: bool,
    /// The token that it has shown, where there are tokens.
    pub(crate) token: Option<TokenId>,
    /// Another node carries its messages.
    pub(crate) carried: bool,
    /// Its address, over TCP.
    pub(crate) address: Option<IpAddr>,
}

impl Peer {
    /// A process at the other end of a Unix socket.
    pub fn local() -> Self {
        Self { local: true, ..Self::remote("", "") }
    }

    /// A client at the other end of a network.
    pub fn remote(tenant: &str, origin: &str) -> Self {
        let (tenant, origin) = (tenant.into(), origin.into());
        let (process, local, foreign, carried) = (None, false, false, false);
        Self { tenant, origin, process, local, foreign, token: None, carried, address: None }
    }

    /// A client of an earlier service, of which the registry has the process alone.
    pub(crate) fn absent(local: bool, process: Option<Process>) -> Self {
        Self { local, process, ..Self::remote("", "") }
    }

    /// A client whose messages another node carries, as that node describes it.
    pub(crate) fn carried(text: &str) -> Option<Self> {
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (tenant, origin, local, foreign): (String, String, _, _) =
            serde_json::from_slice(&text).ok()?;
        Some(Self { local, foreign, carried: true, ..Self::remote(&tenant, &origin) })
    }

    /// Returns the description of a client for the node to which its messages are carried.
    pub(crate) fn carried_text(&self) -> String {
        let party = serde_json::json!([&*self.tenant, &*self.origin, self.local, self.foreign]);
        URL_SAFE_NO_PAD.encode(party.to_string())
    }

    /// Returns the number of its process, where the kernel tells.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.map(|process| process.pid)
    }

    /// Returns its address for people: that of a node for a client that the node carries.
    pub(crate) fn address(&self) -> String {
        self.address.map_or_else(|| "unix".to_owned(), |address| address.to_string())
    }

    /// The same with its address.
    pub(crate) fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// The same with its process.
    pub(crate) fn of_process(self, process: Option<Process>) -> Self {
        Self { process, ..self }
    }

    /// The same of this user.
    pub(crate) fn of_user(self, tenant: Option<Rc<str>>, foreign: bool) -> Self {
        Self { tenant: tenant.unwrap_or_else(|| self.tenant.clone()), foreign, ..self }
    }

    /// Returns true if it may know of all locks of the service: it is the service's own user, or
    /// root.
    pub(crate) fn sees_all(&self) -> bool {
        self.local && !self.foreign
    }

    /// The same for a program that shares the locks of a web origin.
    pub(crate) fn of_origin(self, origin: &str) -> Self {
        Self { origin: origin.into(), ..self }
    }

    /// The same with the token that it has shown.
    pub(crate) fn with_token(self, token: Option<TokenId>) -> Self {
        Self { token, ..self }
    }

    /// Returns the name of its party, in which no other party has a part.
    pub(crate) fn party(&self) -> String {
        let Self { tenant, origin, local, .. } = self;
        format!("{tenant}\0{origin}\0{local}")
    }

    /// Whether a session of the one may be taken over by the other.
    pub(crate) fn is_same_party(&self, other: &Self) -> bool {
        (&self.tenant, &self.origin, self.local) == (&other.tenant, &other.origin, other.local)
    }
}
