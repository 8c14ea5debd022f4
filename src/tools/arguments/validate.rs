//! Checks a model's arguments against a tool's schema, after repairing what can be repaired
//! without loss. Errors are worded like those of AJV, which models and extensions know.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};
use parking_lot::Mutex;
use serde_json::Value;

use super::coerce::coerce;
use crate::tool::ToolError;
use pi_ai::stream::ToolSpec;

/// Returns the validated arguments, coerced like AJV's `coerceTypes`: `"5"` becomes 5 for a
/// number.
pub fn validate(spec: &ToolSpec, args: Value) -> Result<Value, ToolError> {
    let validator = validator(spec)?;
    if validator.is_valid(&args) {
        return Ok(args);
    }
    let mut coerced = args.clone();
    coerce(&spec.parameters, &mut coerced);
    let mut faults = Faults {
        schema: &spec.parameters,
        found: Vec::new(),
    };
    for error in validator.iter_errors(&coerced) {
        faults.add(&error);
    }
    if faults.found.is_empty() {
        return Ok(coerced);
    }
    Err(ToolError::new(format!(
        "Validation failed for tool \"{}\":\n{}\n\nReceived arguments:\n{args:#}",
        spec.name,
        faults.lines(),
    )))
}

/// Returns the compiled schema. It is compiled once, and again when a tool of that name has
/// another schema.
fn validator(spec: &ToolSpec) -> Result<Arc<Validator>, ToolError> {
    type Cache = HashMap<String, (Value, Arc<Validator>)>;
    static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);
    /// Maximum number of cached schemas: extensions may register tools under ever new names.
    const MAX_CACHED: usize = 512;

    if let Some((schema, validator)) = CACHE.lock().get(&spec.name)
        && *schema == spec.parameters
    {
        return Ok(validator.clone());
    }
    let validator = compile(&spec.parameters).map_err(|error| {
        ToolError::new(format!(
            "The parameter schema of tool \"{}\" is not valid: {error}",
            spec.name
        ))
    })?;
    let validator = Arc::new(validator);
    let mut cache = CACHE.lock();
    if cache.len() >= MAX_CACHED {
        cache.clear();
    }
    let entry = (spec.parameters.clone(), validator.clone());
    cache.insert(spec.name.clone(), entry);
    Ok(validator)
}

/// Returns an error if arguments cannot be checked against the schema.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft7)
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| {
            let path = error.instance_path().to_string();
            match path.as_str() {
                "" => error.to_string(),
                path => format!("{error} (at {path})"),
            }
        })
}

struct Faults<'a> {
    schema: &'a Value,
    found: Vec<Fault>,
}

struct Fault {
    /// Path of the value: `edits/0`, or empty for the arguments as a whole.
    path: String,
    /// Determines which of several faults of one object comes first.
    rank: FaultOrder,
    line: String,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum FaultOrder {
    Missing,
    Unknown,
    Other,
}

impl Faults<'_> {
    fn lines(&self) -> String {
        let lines: Vec<&str> = self.found.iter().map(|fault| fault.line.as_str()).collect();
        lines.join("\n")
    }

    fn add(&mut self, error: &ValidationError<'_>) {
        use ValidationErrorKind as Kind;
        let path = error.instance_path().to_string();
        let path = path.strip_prefix('/').unwrap_or(&path);
        let (shown, rank, times) = match error.kind() {
            Kind::Required { property } if path.is_empty() => {
                (property.as_str().unwrap_or("root"), FaultOrder::Missing, 1)
            }
            Kind::Required { .. } => (path, FaultOrder::Missing, 1),
            // Each unexpected member gets one line.
            Kind::AdditionalProperties { unexpected } => {
                let shown = if path.is_empty() { "root" } else { path };
                (shown, FaultOrder::Unknown, unexpected.len())
            }
            // The errors of the branches come first, in the order of the schema.
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                context.iter().flatten().for_each(|error| self.add(error));
                (
                    if path.is_empty() { "root" } else { path },
                    FaultOrder::Other,
                    1,
                )
            }
            _ if path.is_empty() => ("root", FaultOrder::Other, 1),
            _ => (path, FaultOrder::Other, 1),
        };
        let line = format!("  - {shown}: {}", self.message(error));
        for _ in 0..times {
            self.insert(Fault {
                path: path.to_owned(),
                rank,
                line: line.clone(),
            });
        }
    }

    /// Inserts a fault. Faults of an object itself come before those inside it.
    fn insert(&mut self, fault: Fault) {
        let goes_before = |other: &Fault| {
            if other.path == fault.path {
                return fault.rank < other.rank;
            }
            let inside = match other.path.strip_prefix(&fault.path) {
                Some(rest) => fault.path.is_empty() || rest.starts_with('/'),
                None => false,
            };
            inside && fault.rank != FaultOrder::Other
        };
        let at = self.found.iter().position(goes_before);
        self.found.insert(at.unwrap_or(self.found.len()), fault);
    }

    fn message(&self, error: &ValidationError<'_>) -> String {
        use ValidationErrorKind as Kind;
        let many = |than: &str, limit: &u64, unit: &str| {
            format!("must NOT have {than} than {limit} {unit}")
        };
        match error.kind() {
            Kind::Required { property } => format!(
                "must have required property '{}'",
                property.as_str().unwrap_or_default()
            ),
            Kind::Type { kind } => format!("must be {}", self.type_names(kind, error)),
            Kind::AdditionalProperties { .. } => "must NOT have additional properties".to_owned(),
            Kind::AnyOf { .. } => "must match a schema in anyOf".to_owned(),
            Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
                "must match exactly one schema in oneOf".to_owned()
            }
            Kind::Enum { .. } => "must be equal to one of the allowed values".to_owned(),
            Kind::Constant { .. } => "must be equal to constant".to_owned(),
            Kind::Minimum { limit } => format!("must be >= {limit}"),
            Kind::Maximum { limit } => format!("must be <= {limit}"),
            Kind::ExclusiveMinimum { limit } => format!("must be > {limit}"),
            Kind::ExclusiveMaximum { limit } => format!("must be < {limit}"),
            Kind::MultipleOf { multiple_of } => format!("must be multiple of {multiple_of}"),
            Kind::MinLength { limit } => many("fewer", limit, "characters"),
            Kind::MaxLength { limit } => many("more", limit, "characters"),
            Kind::MinItems { limit } => many("fewer", limit, "items"),
            Kind::MaxItems { limit } => many("more", limit, "items"),
            Kind::AdditionalItems { limit } => {
                format!("must NOT have more than {limit} items")
            }
            Kind::MinProperties { limit } => many("fewer", limit, "properties"),
            Kind::MaxProperties { limit } => many("more", limit, "properties"),
            Kind::Pattern { pattern } => format!("must match pattern \"{pattern}\""),
            Kind::Format { format } => format!("must match format \"{format}\""),
            Kind::UniqueItems => match identical(error.instance()) {
                Some((first, second)) => format!(
                    "must NOT have duplicate items (items ## {first} and {second} are identical)"
                ),
                None => "must NOT have duplicate items".to_owned(),
            },
            Kind::Not { .. } => "must NOT be valid".to_owned(),
            Kind::PropertyNames { .. } => "property name must be valid".to_owned(),
            Kind::FalseSchema => "boolean schema is false".to_owned(),
            _ => error.to_string(),
        }
    }

    /// Returns the type names in the order of the schema, which the validator does not keep.
    fn type_names(&self, kind: &TypeKind, error: &ValidationError<'_>) -> String {
        let names: Vec<String> = match kind {
            TypeKind::Single(kind) => vec![kind.to_string()],
            TypeKind::Multiple(kinds) => {
                let written = self.schema.pointer(&error.schema_path().to_string());
                match written.and_then(Value::as_array) {
                    Some(names) => names
                        .iter()
                        .filter_map(|name| name.as_str().map(str::to_owned))
                        .collect(),
                    None => kinds.iter().map(|kind| kind.to_string()).collect(),
                }
            }
        };
        names.join(",")
    }
}

/// Returns the last pair of equal items.
fn identical(items: &Value) -> Option<(usize, usize)> {
    let items = items.as_array()?;
    (1..items.len()).rev().find_map(|second| {
        let first = items[..second]
            .iter()
            .rposition(|item| *item == items[second])?;
        Some((first, second))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(parameters: Value, args: Value) -> Result<Value, String> {
        let spec = ToolSpec {
            name: "x".to_owned(),
            description: String::new(),
            parameters,
        };
        validate(&spec, args).map_err(|error| error.0)
    }

    #[test]
    fn valid_arguments_pass_untouched() {
        let schema = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}});
        let args = json!({"b": 1, "a": null});
        assert_eq!(check(schema, args.clone()), Ok(args));
    }

    #[test]
    fn numbers_in_strings_are_converted() {
        let schema = json!({
            "type": "object",
            "properties": {"offset": {"type": "number"}, "path": {"type": "string"}},
            "required": ["path"],
        });
        assert_eq!(
            check(schema, json!({"offset": "12", "path": 3})),
            Ok(json!({"offset": 12, "path": "3"}))
        );
    }

    #[test]
    fn the_error_lists_all_faults_and_the_arguments() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": {"type": "string"},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"oldText": {"type": "string"}},
                    "required": ["oldText"],
                }},
            },
            "required": ["path", "edits"],
        });
        let error = check(
            schema.clone(),
            json!({"edits": [{}, {"oldText": {}}], "z": 1}),
        );
        let expected = [
            "Validation failed for tool \"x\":",
            "  - path: must have required property 'path'",
            "  - root: must NOT have additional properties",
            "  - edits/0: must have required property 'oldText'",
            "  - edits/1/oldText: must be string",
            "",
            "Received arguments:",
            "{",
        ];
        let error = error.unwrap_err();
        assert_eq!(
            error.lines().take(8).collect::<Vec<_>>(),
            expected,
            "{error}"
        );
        assert_eq!(
            check(schema, json!([])).unwrap_err(),
            "Validation failed for tool \"x\":\n  - root: must be object\n\nReceived \
             arguments:\n[]"
        );
    }

    #[test]
    fn faults_of_an_object_precede_those_inside() {
        let schema = json!({
            "type": "object",
            "properties": {
                "b": {"type": ["string", "null"]},
                "c": {"type": "array", "uniqueItems": true},
            },
            "required": ["a"],
            "additionalProperties": false,
        });
        let error = check(schema, json!({"c": [2, 1, 1], "b": {}, "d": 1, "e": 2})).unwrap_err();
        let expected = [
            "Validation failed for tool \"x\":",
            "  - a: must have required property 'a'",
            "  - root: must NOT have additional properties",
            "  - root: must NOT have additional properties",
            "  - b: must be string,null",
            "  - c: must NOT have duplicate items (items ## 1 and 2 are identical)",
        ];
        let lines: Vec<&str> = error.lines().take(6).collect();
        assert_eq!(lines[..4], expected[..4]);
        assert!(
            expected[4..].iter().all(|line| lines[4..].contains(line)),
            "{error}"
        );
    }

    #[test]
    fn an_invalid_schema_is_reported() {
        let error = check(json!({"type": "strnig"}), json!({})).unwrap_err();
        assert!(
            error.starts_with("The parameter schema of tool \"x\" is not valid:"),
            "{error}"
        );
    }

    #[test]
    fn another_schema_under_the_same_name_counts() {
        assert!(check(json!({"required": ["a"]}), json!({})).is_err());
        assert!(check(json!({"required": []}), json!({})).is_ok());
    }
}
