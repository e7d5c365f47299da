//! The address of a cluster: `etcd://user:password@h1:2379,h2:2379/prefix`.

use std::fmt;
use std::path::PathBuf;

use crate::error::Error;

const PLAIN: &str = "etcd://";
const ENCRYPTED: &str = "etcds://";
const PORT: u16 = 2379;
/// The prefix of all keys, unless the address names one.
const PREFIX: &str = "navlocks";

/// Where etcd is, and which of its keys a cluster uses.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port` of each member.
    pub members: Vec<String>,
    /// Whether the connections are encrypted.
    pub is_encrypted: bool,
    /// The user and the password.
    pub user: Option<(String, String)>,
    /// All keys begin with this; it ends with a slash.
    pub prefix: String,
}

/// Files for encrypted connections, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// The certificate and the key that this node shows to etcd.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// [`Error::Address`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (rest, is_encrypted) = match (text.strip_prefix(PLAIN), text.strip_prefix(ENCRYPTED)) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => {
                return wrong(format!("it begins neither with {PLAIN} nor {ENCRYPTED}"));
            }
        };
        let (rest, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match rest.rsplit_once('@') {
            Some((user, hosts)) => (Some(credentials(user)?), hosts),
            None => (None, rest),
        };
        let members: Result<Vec<String>, Error> = hosts.split(',').map(member).collect();
        let path = path.trim_matches('/');
        if path.contains(['?', '#']) {
            return wrong("it has options after the prefix".to_owned());
        }
        let prefix = format!("/{}/", if path.is_empty() { PREFIX } else { path });
        Ok(Self { members: members?, is_encrypted, user, prefix })
    }

    /// The addresses of the members as etcd's client wants them.
    pub(crate) fn urls(&self) -> Vec<String> {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        self.members.iter().map(|member| format!("{scheme}://{member}")).collect()
    }
}

impl fmt::Debug for Address {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_encrypted { ENCRYPTED } else { PLAIN })?;
        if let Some((user, _)) = &self.user {
            write!(f, "{user}:…@")?;
        }
        write!(f, "{}{}", self.members.join(","), self.prefix)
    }
}

fn wrong<T>(reason: String) -> Result<T, Error> {
    Err(Error::Address(reason))
}

fn member(text: &str) -> Result<String, Error> {
    if text.is_empty() {
        return wrong("a host is missing".to_owned());
    }
    // The colons of a bare IPv6 address are no port.
    let after_brackets = text.rsplit_once(']').map_or(text, |(_, rest)| rest);
    match after_brackets.rsplit_once(':') {
        None => Ok(format!("{text}:{PORT}")),
        Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(text.to_owned()),
        Some((_, port)) => wrong(format!("{port:?} is not a port")),
    }
}

fn credentials(text: &str) -> Result<(String, String), Error> {
    let Some((user, password)) = text.split_once(':') else {
        return wrong("the user has no password".to_owned());
    };
    Ok((decoded(user)?, decoded(password)?))
}

/// Undoes percent-encoding, which lets a password have any character.
fn decoded(text: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            return wrong(
                "a % in the user or the password is not followed by two digits".to_owned(),
            );
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).or_else(|_| wrong("user and password are not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_with_everything_is_read() {
        let address = Address::parse("etcds://me:p%40ss%3A@h1,h2:99,[::1]:2379/a/b/").unwrap();
        assert_eq!(address.members, ["h1:2379", "h2:99", "[::1]:2379"]);
        assert_eq!(address.user, Some(("me".to_owned(), "p@ss:".to_owned())));
        assert_eq!(address.prefix, "/a/b/");
        assert_eq!(address.urls()[0], "https://h1:2379");
        assert_eq!(format!("{address:?}"), "etcds://me:…@h1:2379,h2:99,[::1]:2379/a/b/");
    }

    #[test]
    fn short_address_has_defaults() {
        let address = Address::parse("etcd://[::1]").unwrap();
        assert_eq!(
            (address.members[0].as_str(), address.prefix.as_str()),
            ("[::1]:2379", "/navlocks/")
        );
        assert!(!address.is_encrypted && address.user.is_none());
    }

    #[test]
    fn wrong_address_is_refused_with_the_reason() {
        let wrong =
            ["http://h", "etcd://", "etcd://h,,h", "etcd://h:x", "etcd://h:0", "etcd://u@h"];
        for text in wrong.into_iter().chain(["etcd://u:%zz@h", "etcd://u:%é@h", "etcd://h/p?x=1"])
        {
            assert!(matches!(Address::parse(text), Err(Error::Address(_))), "{text}");
        }
    }
}
