//! The addresses of a service: one, or those of the nodes of a cluster.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::url::Url;

/// The addresses that a client was given, in their order: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Arc<[Url]>);

impl Addresses {
    /// Makes a list of one address.
    pub fn one(url: Url) -> Self {
        Self(Arc::new([url]))
    }

    /// Parses one address, or a list such as `wss://n1:7400,n2:7400`: later ones may leave out the
    /// scheme of the first.
    ///
    /// # Errors
    ///
    /// The text names the address and its problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let has_scheme = |part: &str| part.starts_with("unix:") || part.contains("://");
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        // The path of a socket may have a comma in it.
        let is_path = text.starts_with("unix:") && !parts[1..].iter().any(|part| has_scheme(part));
        if parts.len() == 1 || is_path {
            return Url::parse(text).map(Self::one);
        }
        if parts.iter().any(|part| part.starts_with("unix:")) {
            return Err(format!(
                "'{text}' has a Unix socket in a list: a list has addresses of one cluster, ws://host:port or wss://host:port"
            ));
        }
        if parts.contains(&"") {
            return Err(format!("'{text}' has an empty address in its list: remove the comma"));
        }
        let scheme = parts[0].split_inclusive("://").next().unwrap_or_default();
        let whole = |part: &&str| match has_scheme(part) {
            true => Url::parse(part),
            false => Url::parse(&format!("{scheme}{part}")),
        };
        let urls = parts.iter().map(whole).collect::<Result<Vec<_>, _>>();
        let urls = urls.map_err(|problem| format!("{problem} (in the list '{text}')"))?;
        if urls.iter().any(|url| url.is_encrypted() != urls[0].is_encrypted()) {
            return Err(format!("'{text}' mixes ws: and wss: use one of them for all addresses"));
        }
        Ok(Self(urls.into()))
    }

    /// Returns all addresses.
    pub fn list(&self) -> &[Url] {
        &self.0
    }

    /// Returns the path, if this is a socket of this machine.
    pub fn socket(&self) -> Option<&Path> {
        self.0.iter().find_map(|url| match url {
            Url::Unix(path) => Some(path.as_path()),
            Url::Web { .. } => None,
        })
    }

    /// Returns true if everything that is sent to these addresses is encrypted.
    pub fn are_encrypted(&self) -> bool {
        self.0.iter().all(Url::is_encrypted)
    }

    /// Returns the host of another machine to which everything is sent unencrypted.
    pub fn in_clear(&self) -> Option<&str> {
        self.0.iter().find_map(Url::is_in_clear)
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, url) in self.0.iter().enumerate() {
            write!(f, "{}{url}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let parsed = Addresses::parse(text).unwrap();
        parsed.list().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn list_has_the_scheme_of_its_first_address() {
        assert_eq!(shown("wss://a:1,b:2, c"), ["wss://a:1/", "wss://b:2/", "wss://c/"]);
        assert_eq!(
            shown("ws://a:1,ws://[::1]:2,b:3/x"),
            ["ws://a:1/", "ws://[::1]:2/", "ws://b:3/x"]
        );
        assert_eq!(shown("unix:/a,b"), ["unix:/a,b"]);
    }

    #[test]
    fn bad_list_is_named_in_the_error_with_its_problem() {
        let bad = [
            ("wss://a,", "empty"),
            ("wss://a,,b", "empty"),
            (",", "empty"),
            ("a,wss://b", "no address"),
            ("wss://a,http://b", "'http://b'"),
            ("wss://a,b:port", "'wss://b:port'"),
            ("wss://a,b c", "'wss://b c'"),
            ("unix:/a,unix:/b", "Unix socket"),
            ("unix:/a,ws://b", "Unix socket"),
            ("ws://b,unix:/a", "Unix socket"),
            ("wss://a,ws://b", "mixes"),
        ];
        for (text, problem) in bad {
            let error = Addresses::parse(text).unwrap_err();
            assert!(error.contains(text) && error.contains(problem), "{error}");
        }
    }
}
