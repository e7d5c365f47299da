// Formats numbers, times and names.

/** Returns a duration in one or two units. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Returns a duration in one unit, for tables and axes. */
export function short(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} d`;
}

/** Returns the local time of day, `ago` milliseconds before `now`. */
export function moment(ago, now = Date.now()) {
  const at = new Date(now - ago);
  const two = (number) => String(number).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Returns the same moment with its date and milliseconds. */
export function exact(ago, now = Date.now()) {
  return new Date(now - ago).toISOString();
}

const counts = new Intl.NumberFormat('en');

export const count = (number) => counts.format(number);

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// ---- untrusted text

/** Characters that are invisible, change the direction of text, or look like a space. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\u034f]|(?! )\p{Zs}/u;
const LETTERS = /[\p{L}\p{M}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const LIKE_LATIN = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/u;

const escaped = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/**
 * Divides a text into readable pieces and escapes. Characters that are invisible, change the
 * direction, or look like another letter become escapes, and so do blanks at an end.
 */
export function pieces(text) {
  const odd = new Set();
  // Blanks at an end are invisible, and a name of blanks has no other letter.
  for (const { 0: blanks, index } of text.matchAll(/^ +| +$/g)) {
    for (let at = 0; at < blanks.length; at += 1) odd.add(index + at);
  }
  for (const { 0: word, index } of text.matchAll(LETTERS)) {
    if (!LATIN.test(word) || !LIKE_LATIN.test(word)) continue;
    let at = index;
    for (const character of word) {
      if (LIKE_LATIN.test(character)) odd.add(at);
      at += character.length;
    }
  }
  const found = [];
  const add = (piece, isEscape) => {
    const last = found.at(-1);
    if (last?.isEscape === isEscape) last.text += piece;
    else found.push({ text: piece, isEscape });
  };
  let at = 0;
  for (const character of text) {
    const isOdd = odd.has(at) || HIDDEN.test(character) || looksLikeAscii(character);
    add(isOdd ? escaped(character) : character === '\\' ? '\\\\' : character, isOdd);
    at += character.length;
  }
  return found;
}

/** Returns whether a character looks like ASCII: full-width, circled and mathematical letters. */
function looksLikeAscii(character) {
  if (character < '\u0080') return false;
  const plain = character.normalize('NFKC');
  return plain !== character && /[!-~]/.test(plain);
}

/** Returns the pieces as one string. */
export function plain(text) {
  return pieces(text).map((piece) => piece.text).join('');
}
