//! From a line to a command, or to what is wrong with the line.

use serde_json::Value;

use super::command::Command;
use super::salvage::salvage;
use crate::ai::half_characters;
use crate::app::ErrorCode;

/// What a line asks for.
#[derive(Debug)]
pub struct Parsed {
    pub command: Command,
    /// As the client calls it.
    pub name: String,
    pub id: Option<Value>,
}

/// Why a line is no command.
#[derive(Debug, PartialEq, Eq)]
pub struct BadCommand {
    pub id: Option<Value>,
    /// The type it claims, `parse` if it has none.
    pub command: String,
    pub code: ErrorCode,
    pub error: String,
}

impl BadCommand {
    fn line(id: Option<Value>, error: impl std::fmt::Display) -> Box<Self> {
        Box::new(Self {
            id,
            command: "parse".into(),
            code: ErrorCode::ParseError,
            error: format!("Failed to parse command: {error}"),
        })
    }
}

/// Bytes that are not UTF-8 become U+FFFD, as they always did.
pub fn parse(line: &[u8]) -> Result<Parsed, Box<BadCommand>> {
    let text = String::from_utf8_lossy(line);
    let value: Value = half_characters::from_str(&text)
        .map_err(|error| BadCommand::line(salvage(&text).id, error))?;
    let Value::Object(members) = &value else {
        return Err(BadCommand::line(None, "a command is a JSON object"));
    };
    let id = members.get("id").cloned();
    let Some(name) = members.get("type").and_then(Value::as_str) else {
        return Err(BadCommand::line(id, "the member \"type\" is missing"));
    };
    let name = name.to_string();
    // Unit variants take no other members.
    match serde_json::from_value(value) {
        Ok(command) => Ok(Parsed { command, name, id }),
        Err(error) => {
            let error = error.to_string();
            let unknown = error.starts_with("unknown variant")
                && error.contains(&format!("unknown variant `{name}`"));
            let (code, error) = match unknown {
                true => (
                    ErrorCode::UnknownCommand,
                    format!("Unknown command: {name}"),
                ),
                false => (ErrorCode::InvalidCommand, format!("{name}: {error}")),
            };
            Err(Box::new(BadCommand {
                id,
                command: name,
                code,
                error,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::command::COMMANDS;
    use super::*;

    fn error(line: &str) -> BadCommand {
        *parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn half_a_character_is_replaced() {
        let line = br#"{"type":"prompt","id":1,"message":"cut \ud83d"}"#;
        let parsed = parse(line).unwrap();
        assert!(
            matches!(parsed.command, Command::Prompt { message, .. } if message == "cut \u{fffd}")
        );
    }

    #[test]
    fn bad_lines_are_told_what_is_wrong() {
        assert_eq!(error("").command, "parse");
        assert!(error("null").error.contains("JSON object"));
        let unknown = error(r#"{"type":"dance"}"#);
        assert_eq!(unknown.error, "Unknown command: dance");
        assert_eq!(unknown.code, ErrorCode::UnknownCommand);
        let missing = error(r#"{"id":"7","type":"prompt"}"#);
        assert_eq!(missing.id, Some(json!("7")));
        assert_eq!(missing.code, ErrorCode::InvalidCommand);
        assert!(missing.error.contains("message"), "{missing:?}");
        let mode = error(r#"{"type":"set_steering_mode","mode":"never"}"#);
        assert_eq!(mode.code, ErrorCode::InvalidCommand);
    }

    #[test]
    fn an_id_is_found_in_what_cannot_be_read() {
        let deep = "[".repeat(10_000);
        let bad = error(&format!(r#"{{"type":"prompt","message":{deep},"id":5}}"#));
        assert_eq!((bad.id, bad.code), (None, ErrorCode::ParseError));
        let closed = "]".repeat(10_000);
        let bad = error(&format!(
            r#"{{"type":"prompt","message":{deep}{closed},"id":5}}"#
        ));
        assert_eq!(bad.id, Some(json!(5)));
    }

    #[test]
    fn commands_ignore_members_they_do_not_know() {
        let parsed = parse(br#"{"type":"get_state","id":1,"extra":true}"#).unwrap();
        assert!(matches!(parsed.command, Command::GetState));
        assert_eq!(
            (parsed.name.as_str(), parsed.id),
            ("get_state", Some(json!(1)))
        );
    }

    #[test]
    fn every_command_that_is_listed_is_one() {
        for name in COMMANDS {
            let bad = match parse(json!({ "type": name }).to_string().as_bytes()) {
                Ok(parsed) => {
                    assert_eq!(parsed.name, name);
                    continue;
                }
                Err(bad) => bad,
            };
            assert_eq!(bad.code, ErrorCode::InvalidCommand, "{bad:?}");
        }
    }

    #[test]
    fn older_names_mean_what_they_meant() {
        let older = |line: Value| parse(line.to_string().as_bytes()).unwrap().command;
        let queue = older(json!({"type": "queue_message", "message": "x"}));
        assert!(matches!(queue, Command::Steer { .. }));
        let mode = older(json!({"type": "set_queue_mode", "mode": "all"}));
        assert!(matches!(mode, Command::SetSteeringMode { .. }));
        let reset = older(json!({"type": "reset"}));
        assert!(matches!(reset, Command::NewSession { .. }));
    }
}
