//! Names as JSON strings, with lone surrogates such as `"\ud800"` kept exactly.

use std::fmt;

use navlocks_core::{EmptyScope, Name, Scope};
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The names of a scope, as a JSON array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub Scope);

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.names();
        let mut array = serializer.serialize_seq(Some(names.len()))?;
        for name in names {
            array.serialize_element(&Text(name))?;
        }
        array.end()
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ScopeVisitor)
    }
}

struct ScopeVisitor;

impl<'de> Visitor<'de> for ScopeVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of names")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Names, A::Error> {
        let Some(Read(first)) = array.next_element()? else {
            return Err(de::Error::custom(EmptyScope));
        };
        let Some(Read(second)) = array.next_element()? else {
            return Ok(Names(first.into()));
        };
        let mut names = vec![first, second];
        while let Some(Read(name)) = array.next_element()? {
            names.push(name);
        }
        Scope::new(names).map(Names).map_err(de::Error::custom)
    }
}

/// A name to be written.
pub(super) struct Text<'a>(&'a Name);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => RawValue::from_string(escaped(self.0))
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

/// Writes a name as a JSON string of ASCII.
fn escaped(name: &Name) -> String {
    let units = name.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<String>())
}

/// A name that was read.
struct Read(Name);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes, because as a str serde refuses JSON's lone surrogates; as bytes they arrive in
        // WTF-8.
        deserializer.deserialize_bytes(NameVisitor).map(Self)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Name, E> {
        Ok(text.into())
    }

    fn visit_bytes<E: de::Error>(self, wtf8: &[u8]) -> Result<Name, E> {
        match str::from_utf8(wtf8) {
            Ok(text) => Ok(text.into()),
            Err(_) => units(wtf8).map(|units| Name::from_utf16(&units)).ok_or_else(|| {
                E::custom("a name is neither UTF-8 nor has it lone surrogates alone")
            }),
        }
    }
}

/// Returns the code units of a text in WTF-8.
fn units(mut wtf8: &[u8]) -> Option<Vec<u16>> {
    let mut units = Vec::new();
    loop {
        let valid = match str::from_utf8(wtf8) {
            Ok(rest) => {
                units.extend(rest.encode_utf16());
                return Some(units);
            }
            Err(error) => error.valid_up_to(),
        };
        let (text, rest) = wtf8.split_at(valid);
        units.extend(str::from_utf8(text).ok()?.encode_utf16());
        let &[0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ref after @ ..] = rest else {
            return None;
        };
        units.push(0xD000 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F));
        wtf8 = after;
    }
}

/// A single name as a member of a message: ``with = "single"``.
pub mod single {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(name: &Name, serializer: S) -> Result<S::Ok, S::Error> {
        Text(name).serialize(serializer)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Read::deserialize(deserializer).map(|Read(name)| name)
    }
}

/// A tag as a member of a message: a text with any code units, as a name is.
pub mod optional {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(tag: &Option<Name>, s: S) -> Result<S::Ok, S::Error> {
        tag.as_ref().map(Text).serialize(s)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Name>, D::Error> {
        let tag = Option::<Read>::deserialize(d)?;
        Ok(tag.map(|Read(name)| name))
    }
}

/// Several names as a member of a message.
pub mod many {
    use super::*;

    /// Writes it.
    pub fn serialize<S: Serializer>(names: &[Name], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(names.iter().map(Text))
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Name>, D::Error> {
        let names = Vec::<Read>::deserialize(d)?;
        Ok(names.into_iter().map(|Read(name)| name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn survives(name: Name) {
        let text = crate::write(&Names(name.clone().into()));
        let Names(scope) = crate::read(&text).expect("what was written can be read");
        assert_eq!(scope.names(), [name], "{text}");
    }

    #[test]
    fn f01_names_on_the_wire_keep_every_code_unit() {
        for text in ["", "a", "\"\\\n\0", "ä", "\u{10000}", "-x", "\u{FFFD}"] {
            survives(text.into());
        }
        for units in [
            &[0xD800][..],
            &[0xDFFF],
            &[0x61, 0xD800, 0x62],
            &[0xDC00, 0xD800],
            &[0xD800, 0xD800, 0xDC00, 0xDC00],
            &[0xE4, 0xDBFF],
        ] {
            survives(Name::from_utf16(units));
        }
    }

    #[test]
    fn surrogate_pair_in_two_escapes_is_one_character() {
        let Names(scope) = crate::read(r#"["\ud83d\ude00"]"#).unwrap();
        assert_eq!(scope.names(), ["😀".into()]);
    }

    #[test]
    fn values_that_are_not_names_are_refused() {
        for text in ["[]", "[1]", "[null]", r#""a""#, r#"["a",]"#, r#"["\ud8"]"#, "[[]]"] {
            assert!(crate::read::<Names>(text).is_err(), "{text}");
        }
    }
}
