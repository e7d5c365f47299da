//! Resource names: any JavaScript string, kept exactly.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};

/// A resource name: any JavaScript string, that is any sequence of UTF-16 code units, lone
/// surrogates, `""` and NUL included.
///
/// Names are equal when their code units are, and ordered by code unit as JavaScript orders
/// strings; nothing is normalised or folded. A name of up to 23 bytes lives inside the value; a
/// longer one is shared, so that a clone never copies its text.
///
/// <https://w3c.github.io/web-locks/#resource-name>
///
/// ```
/// use navlocks_core::Name;
///
/// let lone = Name::from_utf16(&[0xD800]);
/// assert_eq!(lone.to_string(), r"\u{d800}");
/// assert_eq!(Name::from_escaped(&lone.to_string()), Ok(lone));
/// assert!(Name::from("\u{10000}") < Name::from("\u{FF5E}")); // by code unit, not by code point
/// ```
#[derive(Clone)]
pub struct Name(Repr);

/// The text in WTF-8: UTF-8 in which a lone surrogate is encoded like any other code point of its
/// size, and a surrogate pair never is. So equal strings have equal bytes, and ASCII costs its
/// length.
///
/// All in whole words, the discriminant too: names are moved often, and moving odd pieces causes
/// store-forwarding stalls.
#[derive(Clone)]
#[repr(u64)]
enum Repr {
    Inline(Text),
    Shared(Arc<[u8]>),
}

/// A short text; its last byte is its length.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Text([u8; INLINE_BYTES + 1]);

const INLINE_BYTES: usize = 23;

impl Text {
    /// Copies in words: a copy of unknown length is stored in pieces, and moving the text right
    /// after it causes a store-forwarding stall.
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        let length = (bytes.len() as u64) << 56;
        let (whole, rest) = bytes.as_chunks::<8>();
        let last = last_word(bytes, rest.len());
        let words = match *whole {
            [] => [last, 0, length],
            [first] => [u64::from_le_bytes(first), last, length],
            [first, second, ..] => {
                [u64::from_le_bytes(first), u64::from_le_bytes(second), last | length]
            }
        };
        let mut text = [0; INLINE_BYTES + 1];
        for (piece, word) in text.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *piece = word.to_le_bytes();
        }
        Self(text)
    }
}

/// Returns the last `rest` bytes, fewer than eight, as the low bytes of a word.
#[inline]
pub(crate) fn last_word(bytes: &[u8], rest: usize) -> u64 {
    if let Some(&last) = bytes.last_chunk() {
        // Two shifts, because one by 64 bits overflows.
        return u64::from_le_bytes(last) >> 8 >> (56 - 8 * rest);
    }
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(&first), Some(&last)) => {
            let shift = 8 * (bytes.len() - 4);
            u64::from(u32::from_le_bytes(first)) | u64::from(u32::from_le_bytes(last)) << shift
        }
        _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Name {
    /// Makes the name with these UTF-16 code units, whatever they are.
    pub fn from_utf16(units: &[u16]) -> Self {
        let mut wtf8 = Vec::with_capacity(units.len());
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(scalar) => {
                    wtf8.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Err(lone) => push_lone_surrogate(&mut wtf8, lone.unpaired_surrogate()),
            }
        }
        Self::from_wtf8(&wtf8)
    }

    /// Reads the output of [`Display`](fmt::Display) back: `\u{…}` and `\\`.
    ///
    /// # Errors
    ///
    /// [`EscapeError`] when a backslash starts neither.
    pub fn from_escaped(text: &str) -> Result<Self, EscapeError> {
        let mut units = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            units.extend(rest[..at].encode_utf16());
            let escape = &rest[at..];
            let error = || EscapeError { position: text.len() - escape.len() };
            if let Some(after) = escape.strip_prefix(r"\\") {
                units.push(u16::from(b'\\'));
                rest = after;
            } else {
                let (digits, after) = escape
                    .strip_prefix(r"\u{")
                    .and_then(|body| body.split_once('}'))
                    .ok_or_else(error)?;
                units.push(u16::from_str_radix(digits, 16).map_err(|_| error())?);
                rest = after;
            }
        }
        units.extend(rest.encode_utf16());
        Ok(Self::from_utf16(&units))
    }

    #[inline]
    fn from_wtf8(wtf8: &[u8]) -> Self {
        if wtf8.len() <= INLINE_BYTES {
            Self(Repr::Inline(Text::of(wtf8)))
        } else {
            Self(Repr::Shared(Arc::from(wtf8)))
        }
    }

    /// Returns true if the name is long, so that its text is allocated.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.0, Repr::Shared(_))
    }

    /// Frees the text of a long name that is not used any more. The value left behind is another
    /// name.
    #[inline]
    pub(crate) fn forget_text(&mut self) {
        if self.is_shared() {
            *self = Self::from_wtf8(&[]);
        }
    }

    /// Returns a number that most often differs in its high bits between names, for dividing them
    /// into shards. Cheap, and not secret.
    #[inline]
    pub(crate) fn spread(&self) -> u64 {
        // The golden ratio: odd, and without a pattern.
        const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(MIX);
        match &self.0 {
            Repr::Inline(Text(text)) => {
                text.as_chunks().0.iter().fold(0, |sum, &word| mix(sum, u64::from_le_bytes(word)))
            }
            Repr::Shared(bytes) => {
                let (words, rest) = bytes.as_chunks();
                let last = last_word(bytes, rest.len());
                words.iter().map(|&word| u64::from_le_bytes(word)).chain([last]).fold(0, mix)
            }
        }
    }

    /// Returns the bytes of the name: equal for equal names, UTF-8 unless it has lone surrogates.
    #[inline]
    pub(crate) fn as_wtf8(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(Text(text)) => &text[..usize::from(text[INLINE_BYTES])],
            Repr::Shared(bytes) => bytes,
        }
    }

    /// Returns the name as text, unless it has lone surrogates.
    pub fn to_str(&self) -> Option<&str> {
        core::str::from_utf8(self.as_wtf8()).ok()
    }

    /// Returns the UTF-16 code units of the name.
    pub fn encode_utf16(&self) -> impl Iterator<Item = u16> + '_ {
        CodePoints { wtf8: self.as_wtf8() }.flat_map(|code_point| {
            let supplementary = code_point.checked_sub(0x1_0000);
            let first = match supplementary {
                Some(offset) => 0xD800 + (offset >> 10) as u16,
                None => code_point as u16,
            };
            let second = supplementary.map(|offset| 0xDC00 + (offset & 0x3FF) as u16);
            core::iter::once(first).chain(second)
        })
    }

    /// Returns how many UTF-16 code units the name has: JavaScript's `length`.
    pub fn len_utf16(&self) -> usize {
        self.encode_utf16().count()
    }

    /// Returns how many bytes the name takes: its UTF-8 length where it has no lone surrogates.
    pub fn len_bytes(&self) -> usize {
        self.as_wtf8().len()
    }

    /// Returns true if the first code unit is `-`. The standard's surface reserves such names; the
    /// engine does not.
    pub fn starts_with_hyphen(&self) -> bool {
        self.as_wtf8().first() == Some(&b'-')
    }
}

/// Encodes `surrogate` in the three bytes that its code point would take.
fn push_lone_surrogate(wtf8: &mut Vec<u8>, surrogate: u16) {
    wtf8.push(0xE0 | (surrogate >> 12) as u8);
    wtf8.push(0x80 | (surrogate >> 6 & 0x3F) as u8);
    wtf8.push(0x80 | (surrogate & 0x3F) as u8);
}

/// The code points of well-formed WTF-8, lone surrogates included.
struct CodePoints<'a> {
    wtf8: &'a [u8],
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let lead = *self.wtf8.first()?;
        let (length, bits) = match lead {
            0x00..=0x7F => (1, lead),
            0x80..=0xDF => (2, lead & 0x1F),
            0xE0..=0xEF => (3, lead & 0x0F),
            0xF0..=0xFF => (4, lead & 0x07),
        };
        let (sequence, rest) = self.wtf8.split_at(length);
        self.wtf8 = rest;
        let continuation = sequence[1..].iter();
        Some(
            continuation
                .fold(u32::from(bits), |code_point, byte| code_point << 6 | u32::from(byte & 0x3F)),
        )
    }
}

impl From<&str> for Name {
    #[inline]
    fn from(text: &str) -> Self {
        Self::from_wtf8(text.as_bytes())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Self> for Name {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

impl PartialEq for Name {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // The bytes after the text are zero.
            (Repr::Inline(Text(text)), Repr::Inline(Text(other))) => text == other,
            (Repr::Shared(bytes), Repr::Shared(other)) => bytes == other,
            // A text that fits is always inline, so an inline name never equals a shared one.
            _ => false,
        }
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_wtf8().hash(state);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        // Bytes order as code units do, except where surrogates take part: their lead bytes start
        // at ED.
        let (a, b) = (self.as_wtf8(), other.as_wtf8());
        match a.iter().zip(b).find(|(a, b)| a != b) {
            Some((a, b)) if *a >= 0xED || *b >= 0xED => {
                self.encode_utf16().cmp(other.encode_utf16())
            }
            Some((a, b)) => a.cmp(b),
            None => a.len().cmp(&b.len()),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes the name so that a reader, and [`Name::from_escaped`], gets it back exactly: text as it
/// is, but `\u{d800}` for a lone surrogate or a control character, and `\\` for a backslash.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for code_point in (CodePoints { wtf8: self.as_wtf8() }) {
            match char::from_u32(code_point) {
                Some('\\') => f.write_str(r"\\")?,
                Some(scalar) if !scalar.is_control() => f.write_char(scalar)?,
                _ => write!(f, "\\u{{{code_point:x}}}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The text given to [`Name::from_escaped`] has a backslash that starts no escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EscapeError {
    /// The byte offset of that backslash.
    pub position: usize,
}

impl fmt::Display for EscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the backslash at byte {} starts no escape: write \\\\ for a backslash and \\u{{d800}} for a code unit",
            self.position
        )
    }
}

impl core::error::Error for EscapeError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// The test compares every pair of these, in both directions, with the order of their code
    /// units.
    const UNITS: &[&[u16]] = &[
        &[],
        &[0],
        &[0x2D],
        &[0x61],
        &[0x61, 0x62],
        &[0xE9],
        &[0x65, 0x301],
        &[0x7FF],
        &[0x800],
        &[0xD7FF],
        &[0xD800],
        &[0xD800, 0xDC00],
        &[0xD800, 0xDC01],
        &[0xD800, 0xD800, 0xDC00],
        &[0xDBFF, 0xDFFF],
        &[0xDC00],
        &[0xDC00, 0xD800],
        &[0xDFFF, 0x61],
        &[0xE000],
        &[0xFF5E],
        &[0xFFFD],
        &[0xFFFF],
        &[0x61; 23],
        &[0x61; 24],
        &[0xD800; 30],
    ];

    #[test]
    fn names_keep_their_code_units_and_are_ordered_by_them() {
        for a in UNITS {
            let name = Name::from_utf16(a);
            assert!(name.encode_utf16().eq(a.iter().copied()));
            assert_eq!(name.len_utf16(), a.len());
            for b in UNITS {
                let other = Name::from_utf16(b);
                assert_eq!(name.cmp(&other), a.cmp(b), "{name} against {other}");
                assert_eq!(name == other, a == b);
            }
        }
    }

    #[test]
    fn name_of_any_length_keeps_its_text() {
        let text = "0123456789abcdefghijklmnop";
        for length in 0..=text.len() {
            let name = Name::from(&text[..length]);
            assert_eq!(name.to_str(), Some(&text[..length]));
            assert_eq!(name.is_shared(), length > INLINE_BYTES);
        }
    }

    #[test]
    fn displayed_name_reads_back_unchanged() {
        for units in UNITS {
            let name = Name::from_utf16(units);
            assert_eq!(Name::from_escaped(&name.to_string()), Ok(name));
        }
        let tricky = Name::from(r"C:\u{61}\");
        assert_eq!(tricky.to_string(), r"C:\\u{61}\\");
        assert_eq!(Name::from_escaped(&tricky.to_string()), Ok(tricky));
        assert_eq!(Name::from("\n").to_string(), r"\u{a}");
    }

    #[test]
    fn bad_escape_error_has_its_position() {
        for (text, position) in
            [(r"ab\", 2), (r"\x", 0), (r"\u{", 0), (r"a\u{}", 1), (r"\u{12345}", 0)]
        {
            assert_eq!(Name::from_escaped(text), Err(EscapeError { position }), "{text}");
        }
    }

    #[test]
    fn name_is_four_words() {
        assert_eq!(size_of::<Name>(), 32);
        assert_eq!(size_of::<Option<crate::Scope>>(), 32);
    }
}
