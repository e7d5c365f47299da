//! The versions of the protocol, and the choice between them in the handshake.

/// The newest version of the protocol that this crate speaks.
pub const VERSION: u32 = 2;

/// The WebSocket subprotocol of that version.
pub const SUBPROTOCOL: &str = "navlocks.2";

/// All subprotocols that this crate speaks, the newest first: a version and the one before, from
/// the first release on.
pub const SUBPROTOCOLS: &[&str] = &[SUBPROTOCOL];

/// The same as a header has them.
pub const OFFERED_SUBPROTOCOLS: &str = SUBPROTOCOL;

/// A subprotocol that starts with this carries an access token in base64url, for browsers, which
/// cannot set headers.
pub const TOKEN_SUBPROTOCOL: &str = "navlocks.token.";

/// Chooses the newest of `known` subprotocols that a client offers. `known` begins with the newest,
/// and unknown ones, older or newer, are ignored.
///
/// # Errors
///
/// The client offers none of them. The sentence has the versions of both sides.
pub fn choose_subprotocol(
    known: &[&'static str],
    offered: &[&str],
) -> Result<&'static str, String> {
    if let Some(&chosen) = known.iter().find(|known| offered.contains(known)) {
        return Ok(chosen);
    }
    let family = |it: &&&str| it.starts_with("navlocks.") && !it.starts_with(TOKEN_SUBPROTOCOL);
    let theirs: Vec<&str> = offered.iter().filter(family).take(NAMED_MAX).copied().collect();
    let ours = known.join(", ");
    if theirs.is_empty() {
        return Err(format!("this service speaks the subprotocol {ours}"));
    }
    let theirs = theirs.join(", ");
    Err(format!(
        "this service speaks {ours}, and the client {theirs}: use a client and a service whose versions are at most one apart"
    ))
}

/// A sentence names so many versions of a client.
const NAMED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(known: &[&'static str], offered: &str) -> Result<&'static str, String> {
        let offered: Vec<&str> = offered.split(',').map(str::trim).collect();
        choose_subprotocol(known, &offered)
    }

    #[test]
    fn newest_version_that_both_sides_speak_is_chosen() {
        let later = ["navlocks.4", "navlocks.3"];
        let cases = [
            ("navlocks.3", "navlocks.3"),
            ("navlocks.4", "navlocks.4"),
            ("navlocks.3, navlocks.4", "navlocks.4"),
            // A client that is newer offers the version before its own.
            ("navlocks.5, navlocks.4", "navlocks.4"),
            ("navlocks.3, navlocks.2", "navlocks.3"),
            ("mqtt, navlocks.token.abc, navlocks.3", "navlocks.3"),
        ];
        for (offered, chosen) in cases {
            assert_eq!(choose(&later, offered), Ok(chosen), "{offered}");
        }
    }

    #[test]
    fn clients_two_versions_apart_are_refused_with_both_versions() {
        let later = ["navlocks.4", "navlocks.3"];
        for offered in ["navlocks.2", "navlocks.6, navlocks.5"] {
            let sentence = choose(&later, offered).unwrap_err();
            let both = format!("speaks navlocks.4, navlocks.3, and the client {offered}:");
            assert!(sentence.contains(&both), "{sentence}");
        }
        let sentence = choose(&later, "mqtt, navlocks.token.abc").unwrap_err();
        assert_eq!(sentence, "this service speaks the subprotocol navlocks.4, navlocks.3");
    }

    #[test]
    fn own_subprotocol_has_the_newest_version() {
        assert_eq!(SUBPROTOCOLS[0], SUBPROTOCOL);
        assert_eq!(SUBPROTOCOL, format!("navlocks.{VERSION}"));
        assert_eq!(OFFERED_SUBPROTOCOLS, SUBPROTOCOLS.join(", "));
    }
}
