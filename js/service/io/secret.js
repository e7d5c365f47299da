// The secret of a session, where the client chooses it.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Read now: a page may replace it later. */
const { crypto } = globalThis;

/** Returns a new secret: 128 random bits in the alphabet of URLs. None without randomness. */
export function drawSecret() {
  const bytes = crypto?.getRandomValues(new Uint8Array(22));
  if (bytes === undefined) return undefined;
  // The last character has two bits of the sixteenth byte.
  bytes[21] &= 0b110000;
  let secret = '';
  for (let index = 0; index < bytes.length; index++) secret += ALPHABET[bytes[index] & 63];
  return secret;
}
