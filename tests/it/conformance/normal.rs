//! Makes two transcripts comparable: values that differ between runs are replaced by names of their
//! meaning. Nothing else is changed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value, json};

/// Milliseconds since 1970, from 2017 to 2033.
const MILLISECONDS: std::ops::Range<f64> = 1.5e12..2e12;

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (
            r"\b\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.-]\d{3}Z",
            "$$TIME",
        ),
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "$$UUID",
        ),
        (r"\b1[5-9]\d{11}\b", "$$MS"),
        // A time of day as an extension formats it in the test's locale.
        (r"\b\d{1,2}:\d\d:\d\d( [AP]M)?\b", "$$CLOCK"),
        // Folders of Node's mkdtemp, and files in which pi keeps long outputs.
        (r"((?:^|\$ROOT/)pi-[a-z-]*)-[A-Za-z0-9]{6}\b", "$1-$$RANDOM"),
        (r"(\$ROOT/pi-bash)-[0-9a-f]{16}", "$1-$$RANDOM"),
    ];
    let compiled = patterns.map(|(pattern, name)| {
        (
            Regex::new(pattern).expect("the patterns are constants"),
            name,
        )
    });
    compiled.into()
});

/// Members of the protocol and of extensions that hold durations.
const DURATIONS: [&str; 4] = ["durationMs", "duration_ms", "elapsedMs", "duration"];

pub(super) struct Names {
    /// Texts that are replaced literally, longest first.
    literal: Vec<(String, String)>,
    /// Patterns of random values of an extension.
    random: Vec<Regex>,
    /// Names of entry ids, which occur as whole texts or as words.
    entries: BTreeMap<String, String>,
}

impl Names {
    pub fn new(root: &Path, server: &str) -> Self {
        let root = root.to_str().expect("a made folder").to_owned();
        // The name of the folder that sessions of this path are stored in.
        let filed = root.trim_start_matches('/').replace('/', "-");
        let host = server.trim_start_matches("http://").to_owned();
        let port = host.split(':').next_back().expect("a port").to_owned();
        Self {
            literal: vec![
                (root, "$ROOT".into()),
                (filed, "$FILED".into()),
                (host, "$HOST".into()),
                (format!(":{port}"), ":$PORT".into()),
            ],
            random: Vec::new(),
            entries: BTreeMap::new(),
        }
    }

    pub fn random(&mut self, patterns: &[String]) {
        let compiled = patterns.iter().map(|pattern| Regex::new(pattern).unwrap());
        self.random.extend(compiled);
    }

    /// Names the ids of a session's entries by their positions.
    pub fn session(&mut self, number: usize, entries: &[Value]) {
        for (place, entry) in entries.iter().enumerate() {
            let Some(id) = entry["id"].as_str() else {
                continue;
            };
            let name = match entry["type"] == "session" {
                true => format!("$SESSION{number}"),
                // A copied entry keeps the name of the original entry.
                false => format!("$ENTRY{number}.{place}"),
            };
            self.entries.entry(id.to_owned()).or_insert(name);
        }
    }

    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (literal, name) in &self.literal {
            text = text.replace(literal, name);
        }
        if let Some(name) = self.entries.get(&text) {
            return name.clone();
        }
        for (id, name) in &self.entries {
            if text.contains(id.as_str()) {
                text = text.replace(id.as_str(), name);
            }
        }
        for (pattern, name) in PATTERNS.iter() {
            text = pattern.replace_all(&text, *name).into_owned();
        }
        for pattern in &self.random {
            text = pattern.replace_all(&text, "$$RANDOM").into_owned();
        }
        text
    }

    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(elements) => elements.iter().map(|element| self.value(element)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| {
                    let value = match name.as_str() {
                        "pid" if value.is_number() => json!("$PID"),
                        name if value.is_number() && DURATIONS.contains(&name) => {
                            json!("$DURATION")
                        }
                        _ => self.value(value),
                    };
                    (self.text(name), value)
                })
                .collect(),
            Value::Number(number) => number_of(number),
            other => other.clone(),
        }
    }
}

fn number_of(number: &Number) -> Value {
    let value = number.as_f64().unwrap_or_default();
    match MILLISECONDS.contains(&value) {
        true => json!("$MS"),
        // JSON does not distinguish 1 and 1.0.
        false if value.fract() == 0.0 && value.abs() < 9e15 => json!(value as i64),
        false => json!(value),
    }
}
