//! Keys of clients and requests of all sessions: the number of the session, and their own number in
//! it.

use std::fmt;
use std::str::FromStr;

use navlocks_core::{ClientId, RequestId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! key {
    ($(#[$doc:meta])* $key:ident, $id:ident, $number:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $key {
            /// The session.
            pub session: u32,
            /// Its own number there.
            pub $number: u64,
        }

        impl $key {
            /// Makes the key with these numbers.
            pub fn new(session: u32, $number: u64) -> Self {
                Self { session, $number }
            }
        }

        impl From<$key> for $id {
            fn from(key: $key) -> Self {
                Self::foreign(key.session, key.$number)
            }
        }

        impl TryFrom<$id> for $key {
            type Error = NotAKey;

            fn try_from(id: $id) -> Result<Self, NotAKey> {
                let (session, number) = id.foreign_parts().ok_or(NotAKey)?;
                Ok(Self::new(session, number))
            }
        }

        impl fmt::Display for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}.{}", self.session, self.$number)
            }
        }

        impl FromStr for $key {
            type Err = NotAKey;

            fn from_str(text: &str) -> Result<Self, NotAKey> {
                let (session, number) = text.split_once('.').ok_or(NotAKey)?;
                let session = session.parse().map_err(|_| NotAKey)?;
                Ok(Self::new(session, number.parse().map_err(|_| NotAKey)?))
            }
        }

        impl Serialize for $key {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $key {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

key! {
    /// A client of any session: `"12.0"` is client 0 of session 12.
    ClientKey, ClientId, client
}

key! {
    /// A request of any session: `"12.7"` is request 7 of session 12.
    RequestKey, RequestId, request
}

/// The error of a text that is not two numbers with a dot between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(unnameable_types, reason = "callers pass it on as text")]
pub struct NotAKey;

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clients and requests are named like \"12.7\", session and number")
    }
}

impl std::error::Error for NotAKey {}
