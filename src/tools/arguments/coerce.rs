//! Converts scalars to the type that a schema requires, by the rules of AJV's `coerceTypes:
//! true`: between strings, numbers, booleans and null where nothing is lost, never to or from
//! arrays and objects. One difference, as in newer versions: null for an optional member removes
//! the member, which is what models mean by it.

use serde_json::{Map, Number, Value};

use super::validate::compile;

/// Maximum depth: schemas may refer to themselves endlessly.
const MAX_COERCED_DEPTH: usize = 64;

pub(crate) fn coerce(schema: &Value, value: &mut Value) {
    Coercion { root: schema }.apply(schema, value, 0);
}

struct Coercion<'a> {
    root: &'a Value,
}

impl<'a> Coercion<'a> {
    fn apply(&self, schema: &'a Value, value: &mut Value, depth: usize) {
        let Some(schema) = schema.as_object() else {
            return;
        };
        if depth > MAX_COERCED_DEPTH {
            return;
        }
        if let Some(target) = self.referenced(schema) {
            self.apply(target, value, depth + 1);
        }
        if let Some(kind) = schema.get("type") {
            to_type(kind, value);
        }
        self.branches(schema, value, depth);
        match value {
            Value::Object(fields) => self.fields(schema, fields, depth),
            Value::Array(items) => self.items(schema, items, depth),
            _ => {}
        }
    }

    fn referenced(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    fn branches(&self, schema: &'a Map<String, Value>, value: &mut Value, depth: usize) {
        for branch in list(schema, "allOf") {
            self.apply(branch, value, depth + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(schema, keyword);
            // A value that matches a branch stays unchanged, even if an earlier branch could
            // convert it.
            if branches.iter().any(|branch| self.accepts(branch, value)) {
                continue;
            }
            for branch in branches {
                let mut candidate = value.clone();
                self.apply(branch, &mut candidate, depth + 1);
                if self.accepts(branch, &candidate) {
                    *value = candidate;
                    break;
                }
            }
        }
    }

    fn accepts(&self, branch: &Value, value: &Value) -> bool {
        let mut branch = branch.clone();
        // `$ref` may point to these definitions.
        if let (Value::Object(branch), Value::Object(root)) = (&mut branch, self.root) {
            for name in ["$defs", "definitions"] {
                if let Some(definitions) = root.get(name) {
                    branch.entry(name).or_insert_with(|| definitions.clone());
                }
            }
        }
        compile(&branch).is_ok_and(|validator| validator.is_valid(value))
    }

    fn fields(
        &self,
        schema: &'a Map<String, Value>,
        fields: &mut Map<String, Value>,
        depth: usize,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let required = list(schema, "required");
        let is_left_out = |name: &String, value: &Value| {
            let known = properties.and_then(|properties| properties.get(name));
            value.is_null()
                && !required.iter().any(|required| required == name)
                && known.is_some_and(|known| {
                    known.get("$ref").is_none() && !self.accepts(known, &Value::Null)
                })
        };
        fields.retain(|name, value| !is_left_out(name, value));
        for (name, value) in fields {
            let known = properties.and_then(|properties| properties.get(name));
            if let Some(schema) = known.or(others) {
                self.apply(schema, value, depth + 1);
            }
        }
    }

    fn items(&self, schema: &'a Map<String, Value>, items: &mut [Value], depth: usize) {
        let each = schema.get("items");
        let others = schema.get("additionalItems");
        for (index, item) in items.iter_mut().enumerate() {
            let schema = match each {
                Some(Value::Array(tuple)) => tuple.get(index).or(others),
                each => each,
            };
            if let Some(schema) = schema {
                self.apply(schema, item, depth + 1);
            }
        }
    }
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Converts the value to the first of the types that it can become, unless it already has one of
/// them.
fn to_type(kind: &Value, value: &mut Value) {
    let kinds: Vec<&str> = match kind {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    if kinds.iter().any(|kind| is(kind, value)) {
        return;
    }
    if let Some(coerced) = kinds.iter().find_map(|kind| coerced(kind, value)) {
        *value = coerced;
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn coerced(kind: &str, value: &Value) -> Option<Value> {
    let zero = || value.as_f64() == Some(0.0);
    let one = || value.as_f64() == Some(1.0);
    match (kind, value) {
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("string", Value::Null) => Some(Value::String(String::new())),
        ("number" | "integer", Value::Bool(flag)) => Some(i32::from(*flag).into()),
        ("number" | "integer", Value::Null) => Some(0.into()),
        ("number", Value::String(text)) => number(text),
        ("integer", Value::String(text)) => number(text).filter(|number| is("integer", number)),
        ("boolean", Value::Null) => Some(false.into()),
        ("boolean", Value::String(text)) => text.parse().ok().map(Value::Bool),
        ("boolean", Value::Number(_)) if zero() => Some(false.into()),
        ("boolean", Value::Number(_)) if one() => Some(true.into()),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Number(_)) if zero() => Some(Value::Null),
        _ => None,
    }
}

/// Converts a text like JavaScript's `+text`.
fn number(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    let text = text.trim();
    if text.is_empty() {
        return Some(0.into());
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.to_ascii_lowercase().strip_prefix(prefix) {
            return u32::from_str_radix(digits, radix).ok().map(Value::from);
        }
    }
    // Rust also parses `inf` and `nan`.
    if !text.starts_with(|sign: char| sign.is_ascii_digit() || "+-.".contains(sign)) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if float.fract() == 0.0 && float.abs() < EXACT {
        return Some(Value::from(float as i64));
    }
    Number::from_f64(float).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn coerced(schema: Value, mut value: Value) -> Value {
        coerce(&schema, &mut value);
        value
    }

    #[test]
    fn scalars() {
        let cases = [
            ("string", json!(5), json!("5")),
            ("string", json!(true), json!("true")),
            ("string", json!(null), json!("")),
            ("string", json!([1]), json!([1])),
            ("number", json!("5"), json!(5)),
            ("number", json!(" 1.5e3 "), json!(1500)),
            ("number", json!("0.25"), json!(0.25)),
            ("number", json!("5 apples"), json!("5 apples")),
            ("number", json!("0x10"), json!(16)),
            ("number", json!("inf"), json!("inf")),
            ("number", json!("-inf"), json!("-inf")),
            ("number", json!(""), json!("")),
            ("number", json!(null), json!(0)),
            ("integer", json!("5.5"), json!("5.5")),
            ("integer", json!("5.0"), json!(5)),
            ("boolean", json!("true"), json!(true)),
            ("boolean", json!("yes"), json!("yes")),
            ("boolean", json!(1), json!(true)),
            ("boolean", json!(2), json!(2)),
            ("null", json!(""), json!(null)),
            ("null", json!(false), json!(null)),
            ("array", json!("a"), json!("a")),
            ("object", json!("{}"), json!("{}")),
        ];
        for (kind, value, expected) in cases {
            let name = format!("{value} as {kind}");
            assert_eq!(coerced(json!({"type": kind}), value), expected, "{name}");
        }
        assert_eq!(
            coerced(json!({"type": ["boolean", "number"]}), json!("3")),
            json!(3)
        );
    }

    #[test]
    fn at_any_depth() {
        let schema = json!({
            "type": "object",
            "properties": {
                "list": {"type": "array", "items": {"$ref": "#/$defs/count"}},
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
            },
            "additionalProperties": {"type": "boolean"},
            "allOf": [{"properties": {"late": {"type": "string"}}}],
            "$defs": {"count": {"type": "integer"}},
        });
        let value = json!({"list": ["1", 2], "pair": [3, "4"], "other": "false"});
        assert_eq!(
            coerced(schema, value),
            json!({"list": [1, 2], "pair": ["3", 4], "other": false})
        );
    }

    /// Regression: a null limit became 0, and a null list was refused.
    #[test]
    fn null_removes_optional_members() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "number"},
                "list": {"type": "array"},
                "wanted": {"type": "number"},
                "nothing": {"type": ["null", "string"]},
                "deep": {"type": "array", "items": {"properties": {"kind": {"enum": ["a"]}}}},
            },
            "required": ["wanted"],
            "additionalProperties": {"type": "string"},
        });
        let value = json!({
            "limit": null, "list": null, "wanted": null, "nothing": null, "deep": [{"kind": null}],
            "other": null,
        });
        assert_eq!(
            coerced(schema, value),
            json!({"wanted": 0, "nothing": null, "deep": [{}], "other": ""})
        );
    }

    #[test]
    fn a_value_that_matches_a_union_is_unchanged() {
        let schema = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
        assert_eq!(coerced(schema.clone(), json!(5)), json!(5));
        assert_eq!(coerced(schema, json!(true)), json!("true"));
        let schema = json!({"anyOf": [{"const": 1, "type": "number"}, {"type": "boolean"}]});
        assert_eq!(coerced(schema, json!("true")), json!(true));
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({"$ref": "#/definitions/a", "definitions": {
            "a": {"$ref": "#/definitions/a"},
        }});
        assert_eq!(coerced(schema, json!("5")), json!("5"));
    }
}
