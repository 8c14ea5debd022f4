//! Parses a line into a command, or into the error that is sent as the response.

use serde_json::Value;

use super::command::Command;
use super::recover_id::recover_id;
use pi_ai::json::surrogates;
use pi_app::ErrorCode;

/// A command with the members that every command has.
#[derive(Debug)]
pub struct ParsedCommand {
    pub command: Command,
    /// The `type` that the client sent, which may be an older name.
    pub name: String,
    pub id: Option<Value>,
}

/// Why a line is not a valid command.
#[derive(Debug, PartialEq, Eq)]
pub struct BadCommand {
    pub id: Option<Value>,
    /// The `type` of the line, `parse` if it has none.
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

/// Parses a line. Bytes that are not UTF-8 become U+FFFD.
pub fn parse(line: &[u8]) -> Result<ParsedCommand, Box<BadCommand>> {
    let text = String::from_utf8_lossy(line);
    let value: Value =
        surrogates::from_str(&text).map_err(|error| BadCommand::line(recover_id(&text), error))?;
    let Value::Object(members) = &value else {
        return Err(BadCommand::line(None, "a command is a JSON object"));
    };
    let id = members.get("id").cloned();
    let Some(name) = members.get("type").and_then(Value::as_str) else {
        return Err(BadCommand::line(id, "the member \"type\" is missing"));
    };
    let name = name.to_string();
    // Unit variants ignore other members.
    match serde_json::from_value(value) {
        Ok(command) => Ok(ParsedCommand { command, name, id }),
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
    fn a_lone_surrogate_is_replaced() {
        let line = br#"{"type":"prompt","id":1,"message":"cut \ud83d"}"#;
        let parsed = parse(line).unwrap();
        assert!(
            matches!(parsed.command, Command::Prompt { message, .. } if message == "cut \u{fffd}")
        );
    }

    #[test]
    fn errors_name_what_is_wrong() {
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
    fn the_id_of_a_deeply_nested_line_is_recovered() {
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
    fn unknown_members_are_ignored() {
        let parsed = parse(br#"{"type":"get_state","id":1,"extra":true}"#).unwrap();
        assert!(matches!(parsed.command, Command::GetState));
        assert_eq!(
            (parsed.name.as_str(), parsed.id),
            ("get_state", Some(json!(1)))
        );
    }

    #[test]
    fn every_listed_command_is_parsed() {
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
    fn older_names_are_parsed() {
        let older = |line: Value| parse(line.to_string().as_bytes()).unwrap().command;
        let queue = older(json!({"type": "queue_message", "message": "x"}));
        assert!(matches!(queue, Command::Steer { .. }));
        let mode = older(json!({"type": "set_queue_mode", "mode": "all"}));
        assert!(matches!(mode, Command::SetSteeringMode { .. }));
        let reset = older(json!({"type": "reset"}));
        assert!(matches!(reset, Command::NewSession { .. }));
    }
}
