//! Where a resource comes from, in the words of the wire (`get_commands`,
//! `pi.getAllTools`).

use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SourceScope {
    User,
    Project,
    /// Given for this run only.
    Temporary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Package,
    TopLevel,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    pub path: String,
    /// `auto`, `local`, `cli`, `builtin`, `sdk`, `inline`, `extension:<name>`
    /// or the source of a package as the settings write it.
    pub source: String,
    pub scope: SourceScope,
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

impl SourceInfo {
    /// A tool of ours: `<builtin:read>`.
    pub fn builtin(name: &str) -> Self {
        Self {
            path: format!("<builtin:{name}>"),
            source: "builtin".to_owned(),
            scope: SourceScope::Temporary,
            origin: Origin::TopLevel,
            base_dir: None,
        }
    }

    /// A tool that whoever began the session brought: `<sdk:name>`.
    pub fn given(name: &str) -> Self {
        Self {
            path: format!("<sdk:{name}>"),
            source: "sdk".to_owned(),
            ..Self::builtin(name)
        }
    }

    /// Of what is in no file, and nobody says more about: `<sdk>`.
    pub fn made_up() -> Self {
        Self {
            path: "<sdk>".to_owned(),
            ..Self::given("")
        }
    }

    /// The same origin, for another file.
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
