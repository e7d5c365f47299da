//! The proof that a connection belongs to a session.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{Context, SHA256};
use subtle::ConstantTimeEq as _;

/// The owner of a session, as the session knows it.
#[derive(Debug)]
pub(crate) enum Owner {
    /// It shows this secret, and is of this party.
    Secret { party: u64, secret: Secret },
    /// It shows the secret of this proof. The registry of a slot has no secrets.
    Proof(String),
}

impl Owner {
    /// Returns true if a peer of this party has shown the secret of the session.
    pub(crate) fn is(&self, shown: &Secret, party: &str, hash: u64) -> bool {
        match self {
            Self::Secret { party, secret } => secret.is(shown) && *party == hash,
            Self::Proof(proof) => shown.proves(party, proof),
        }
    }

    /// Returns true if it is known to be of this party.
    pub(crate) fn is_of(&self, hash: u64) -> bool {
        matches!(self, Self::Secret { party, .. } if *party == hash)
    }

    /// Returns the secret as it is told to the owner, where the session has it.
    pub(crate) fn tell(&self) -> Option<String> {
        match self {
            Self::Secret { secret, .. } => Some(secret.tell()),
            Self::Proof(_) => None,
        }
    }
}

/// Sixteen random bytes that only a session's owner is told. Compared in constant time, never
/// shown.
#[derive(Clone)]
pub(crate) struct Secret([u8; 16]);

impl Secret {
    /// A new one. None when the system has no randomness to give.
    pub(crate) fn new() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The secret of a session of an earlier service.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads the text that was told to its owner.
    pub(crate) fn read(told: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(told).ok()?.try_into().ok().map(Self)
    }

    /// Returns the proof that another node compares, which does not tell the secret. It is of this
    /// party alone.
    pub(crate) fn proof(&self, party: &str) -> String {
        let mut hash = Context::new(&SHA256);
        hash.update(&self.0);
        hash.update(party.as_bytes());
        URL_SAFE_NO_PAD.encode(hash.finish())
    }

    /// Returns true if this is the secret of that proof.
    fn proves(&self, party: &str, proof: &str) -> bool {
        self.proof(party).as_bytes().ct_eq(proof.as_bytes()).into()
    }

    /// As the registry keeps it.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// As it is told to its owner.
    pub(crate) fn tell(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    fn is(&self, shown: &Self) -> bool {
        self.0.ct_eq(&shown.0).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
