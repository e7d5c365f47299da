//! The secret of a session, where the client chooses it.

use tokio_rustls::rustls::crypto::ring::default_provider;

/// Returns a new secret: 128 random bits in the alphabet of URLs. None if the system has no
/// randomness to give; then the service chooses.
pub(super) fn draw() -> Option<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; 22];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    // The last character has two bits of the sixteenth byte.
    bytes[21] &= 0b11_0000;
    Some(bytes.iter().map(|byte| ALPHABET[usize::from(byte & 63)] as char).collect())
}
