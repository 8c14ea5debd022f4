//! The origin of a resource in the terms of the wire (`get_commands`, `pi.getAllTools`).

use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceScope {
    User,
    Project,
    /// Given for this run only.
    Temporary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Package,
    TopLevel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    pub path: String,
    /// `auto`, `local`, `cli`, `builtin`, `sdk`, `inline`, `extension:<name>` or the source of
    /// a package as in the settings.
    pub source: String,
    pub scope: SourceScope,
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

impl SourceInfo {
    /// Makes the origin of a built-in tool: `<builtin:read>`.
    pub fn builtin(name: &str) -> Self {
        Self {
            path: format!("<builtin:{name}>"),
            source: "builtin".to_owned(),
            scope: SourceScope::Temporary,
            origin: Origin::TopLevel,
            base_dir: None,
        }
    }

    /// Makes the origin of a tool that the program passed when it started the session:
    /// `<sdk:name>`.
    pub fn sdk(name: &str) -> Self {
        Self {
            path: format!("<sdk:{name}>"),
            source: "sdk".to_owned(),
            ..Self::builtin(name)
        }
    }

    /// Makes the origin of a resource without a file and without another known origin: `<sdk>`.
    pub fn without_origin() -> Self {
        Self {
            path: "<sdk>".to_owned(),
            ..Self::sdk("")
        }
    }

    /// Returns the same origin for another file.
    pub fn with_path(&self, path: &Path) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_wire_has_camel_case_and_leaves_out_a_missing_base_dir() {
        let mut info = SourceInfo::builtin("read");
        assert_eq!(
            serde_json::to_value(&info).unwrap(),
            json!({"path": "<builtin:read>", "source": "builtin", "scope": "temporary", "origin": "top-level"})
        );
        info.base_dir = Some("/x".into());
        info.origin = Origin::Package;
        assert_eq!(
            serde_json::to_value(info.with_path(Path::new("/x/a.ts"))).unwrap(),
            json!({"path": "/x/a.ts", "source": "builtin", "scope": "temporary", "origin": "package", "baseDir": "/x"})
        );
    }
}
