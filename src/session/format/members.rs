//! The reader of a session line: the members that headers, the tree and lists need, in any form
//! that another program may write. The original programs check no types (`JSON.parse`), so a
//! member of another type must not make the line unreadable.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::paths;
pub use pi_ai::json::depth::{self, Origin};
use pi_ai::json::surrogates;

/// Value of one member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scalar<'a> {
    #[default]
    Missing,
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    /// An object or an array.
    Nested,
}

/// All members that any kind of line has outside of its message.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Members<'a> {
    #[serde(borrow)]
    pub(crate) r#type: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) parent_id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) timestamp: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) version: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) cwd: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) parent_session: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) message: MessageHead<'a>,
    #[serde(borrow)]
    pub(crate) thinking_level: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) provider: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) model_id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) first_kept_entry_id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) custom_type: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) target_id: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) label: Scalar<'a>,
    #[serde(borrow)]
    pub(crate) name: Scalar<'a>,
}

/// Role of a message. The role is `Missing` if `message` is not an object.
#[derive(Debug, Default)]
pub(crate) struct MessageHead<'a> {
    pub(crate) role: Scalar<'a>,
}

impl Members<'_> {
    /// Reads one line. Fails if the line is not a JSON object.
    pub(crate) fn read(line: &[u8]) -> Result<Members<'_>, serde_json::Error> {
        if !line.trim_ascii_start().starts_with(b"{") {
            return Err(serde_json::Error::custom("it is not a JSON object"));
        }
        serde_json::from_slice(line).or_else(|error| {
            let text = String::from_utf8_lossy(line);
            let text = surrogates::replace_lone_surrogates(&text).map_or(text, Cow::Owned);
            // The line has a member twice: the last one is used, as in JavaScript.
            let value: Result<Value, _> = depth::from_str(&text, Origin::SessionLine);
            value.map_or(Err(error), Members::deserialize)
        })
    }

    /// Describes the first member of an entry that is not in the form that pi writes; `None` if
    /// all are.
    pub(crate) fn unusual_in_entry(&self) -> Option<String> {
        use Scalar::{Missing, Null, Text};
        let members = [
            ("type", &self.r#type, matches!(self.r#type, Text(_))),
            (
                "id",
                &self.id,
                matches!(&self.id, Text(id) if !id.is_empty()),
            ),
            (
                "parentId",
                &self.parent_id,
                matches!(self.parent_id, Text(_) | Null | Missing),
            ),
            (
                "timestamp",
                &self.timestamp,
                matches!(self.timestamp, Text(_) | Missing),
            ),
        ];
        first_unusual(members)
    }

    /// Describes the first member of a header that is not in the form that pi writes; `None` if
    /// all are.
    pub(crate) fn unusual_in_header(&self) -> Option<String> {
        use Scalar::{Missing, Null, Number, Text};
        let members = [
            ("id", &self.id, matches!(self.id, Text(_))),
            (
                "version",
                &self.version,
                matches!(self.version, Number(_) | Missing),
            ),
            (
                "timestamp",
                &self.timestamp,
                matches!(self.timestamp, Text(_) | Missing),
            ),
            (
                "cwd",
                &self.cwd,
                matches!(self.cwd, Text(_) | Null | Missing),
            ),
            (
                "parentSession",
                &self.parent_session,
                matches!(self.parent_session, Text(_) | Null | Missing),
            ),
        ];
        first_unusual(members)
    }

    /// Returns the time of the entry or header in ISO 8601; empty if there is none. A number
    /// counts milliseconds since the epoch, as in `new Date(number)`.
    pub(crate) fn time(&self) -> String {
        match &self.timestamp {
            Scalar::Text(text) => text.to_string(),
            Scalar::Number(number) => paths::iso_of_millis(*number as i64).unwrap_or_default(),
            _ => String::new(),
        }
    }
}

fn first_unusual<const COUNT: usize>(
    members: [(&str, &Scalar<'_>, bool); COUNT],
) -> Option<String> {
    let unusual = members.into_iter().find(|(_, _, is_usual)| !is_usual);
    unusual.map(|(name, value, _)| format!("`{name}` is {}", value.description()))
}

impl<'a> Scalar<'a> {
    /// Returns the text if the value is a string.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns a string as it is, and a number as JavaScript writes it, which is how ids are
    /// looked up.
    pub(crate) fn into_id(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            // JavaScript writes negative zero without its sign.
            Self::Number(0.0) => Some("0".into()),
            Self::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }

    fn description(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(text) if text.is_empty() => "empty",
            Self::Text(_) => "a text",
            Self::Nested => "an object or an array",
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Scalar<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(number as f64))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Scalar::Bool(value))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar::Null)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nested)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nested)
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageHead<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            role: Scalar<'a>,
        }

        struct AnyMessage;

        impl<'de> Visitor<'de> for AnyMessage {
            type Value = MessageHead<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let head = Head::deserialize(MapAccessDeserializer::new(map))?;
                Ok(MessageHead { role: head.role })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(MessageHead::default())
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(MessageHead::default())
            }
        }

        deserializer.deserialize_any(AnyMessage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_may_have_any_type() {
        for value in [
            "null",
            "true",
            "7",
            "-1.5",
            "[1,{}]",
            r#"{"a":[1]}"#,
            r#""x""#,
        ] {
            for member in [
                "type",
                "id",
                "parentId",
                "timestamp",
                "message",
                "name",
                "label",
            ] {
                let line = format!(r#"{{"{member}":{value},"targetId":"t"}}"#);
                let members = Members::read(line.as_bytes()).unwrap();
                assert!(members.target_id.is("t"), "{line}");
            }
        }
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts() {
        let line = br#"{"id":"a","message":{"role":"x","role":"user"},"id":"b"}"#;
        let members = Members::read(line).unwrap();
        assert!(members.id.is("b") && members.message.role.is("user"));
    }

    #[test]
    fn ids_are_looked_up_as_javascript_writes_them() {
        for (json, id) in [
            ("7", Some("7")),
            ("7.0", Some("7")),
            ("-0", Some("0")),
            ("1e3", Some("1000")),
            ("1.5", Some("1.5")),
            ("null", None),
            ("[7]", None),
        ] {
            let line = format!(r#"{{"id":{json}}}"#);
            let members = Members::read(line.as_bytes()).unwrap();
            assert_eq!(members.id.into_id().as_deref(), id, "{json}");
        }
    }
}
