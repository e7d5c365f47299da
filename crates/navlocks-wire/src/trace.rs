//! The `traceparent` of W3C Trace Context, by which a request belongs to a trace.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// A valid `traceparent` of version 00, such as
/// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct TraceParent(Box<str>);

/// The bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;

impl TraceParent {
    /// Reads a `traceparent`. One of a later version becomes one of version 00, as [Trace
    /// Context](https://www.w3.org/TR/trace-context/) says. Returns none if it is malformed: then
    /// it is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |part: &str, length| is_hex(part, length) && part.bytes().any(|it| it != b'0');
        let mut parts = text.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (parent, flags) = (parts.next()?, parts.next()?);
        let is_valid = is_hex(version, 2)
            && version != "ff"
            && is_id(trace, 32)
            && is_id(parent, 16)
            && is_hex(flags, 2)
            && (version != "00" || text.len() == LENGTH);
        if !is_valid {
            return None;
        }
        if version == "00" {
            return Some(Self(text.into()));
        }
        // Of a later version only this flag is known.
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1;
        Some(Self(format!("00-{trace}-{parent}-{is_sampled:02x}").into()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a member that may be malformed: then it is missing.
pub(super) fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<TraceParent>, D::Error> {
    let text = Option::<std::borrow::Cow<'de, str>>::deserialize(d)?;
    Ok(text.and_then(|text| TraceParent::parse(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToService, read, write};

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn traceparent_is_read_by_its_form() {
        let valid = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let later = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let cases = [
            (valid.clone(), Some(&valid)),
            (valid.replace("-01", "-ff"), None),
            (format!("cc-{TRACE}-00f067aa0ba902b7-03"), Some(&later)),
            (format!("cc-{TRACE}-00f067aa0ba902b7-01-what-follows"), Some(&later)),
        ];
        for (text, expected) in cases {
            let read = TraceParent::parse(&text);
            match expected {
                Some(expected) => assert_eq!(read.unwrap().as_str(), expected, "{text}"),
                // All flags of version 00 are kept.
                None => assert_eq!(read.unwrap().as_str(), text),
            }
        }
        let upper = valid.to_uppercase();
        for malformed in [
            "",
            "00",
            &valid[1..],
            &format!("{valid}-"),
            &format!("{valid}0"),
            &upper,
            &valid.replacen("00-", "ff-", 1),
            &valid.replacen("00-", "0-", 1),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-0"),
            &format!("cc-{TRACE}-00f067aa0ba902b7-012"),
            &format!("00-{}é-00f067aa0ba902b7-01", &TRACE[2..]),
        ] {
            assert_eq!(TraceParent::parse(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn malformed_traceparent_of_a_request_is_ignored() {
        let request = |more: &str| {
            read::<ToService>(&format!(r#"{{"request":{{"id":1,"names":["a"]{more}}}}}"#)).unwrap()
        };
        let plain = request("");
        for malformed in ["\"\"", "\"00-1\"", "null"] {
            assert_eq!(request(&format!(r#","traceparent":{malformed}"#)), plain, "{malformed}");
        }
        let text = format!(r#","traceparent":"00-{TRACE}-00f067aa0ba902b7-01""#);
        assert!(write(&request(&text)).contains(&text[1..]));
    }
}
