//! `overrides` of the package.json at the root of a tree replace what its packages ask for. Other
//! packages have none that count. <https://docs.npmjs.com/cli/v11/configuring-npm/package-json#overrides>

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use deno_npm::resolution::{NpmOverrideRule, NpmOverrideValue, NpmOverrides};
use deno_semver::StackString;
use deno_semver::package::PackageName;
use serde_json::{Map, Value};

use crate::error::NpmError;
use crate::external::Specifier;
use crate::registry::Registry;

/// Lists of a manifest to which `$name` may refer.
const LISTS: [&str; 4] = [
    "peerDependencies",
    "optionalDependencies",
    "devDependencies",
    "dependencies",
];

/// Reads the overrides of a manifest. `folder` is where it is, if that is the root of the tree.
pub(crate) fn of_manifest(
    manifest: &Map<String, Value>,
    folder: Option<&Path>,
    registry: &Registry<'_>,
) -> Result<NpmOverrides, NpmError> {
    let Some(overrides) = manifest.get("overrides") else {
        return Ok(NpmOverrides::default());
    };
    let mut declared: HashMap<PackageName, StackString> = HashMap::new();
    for list in LISTS {
        let entries = manifest.get(list).and_then(Value::as_object);
        for (name, value) in entries.into_iter().flatten() {
            if let Some(value) = value.as_str() {
                declared.insert(name.as_str().into(), value.into());
            }
        }
    }
    let mut overrides = overrides.clone();
    name_externals(&mut overrides, "overrides", &declared, folder, registry);
    NpmOverrides::from_value(overrides, &declared, &Default::default()).map_err(|error| {
        NpmError::Manifest {
            path: folder.unwrap_or(Path::new("")).join("package.json"),
            why: format!("its \"overrides\" cannot be used: {error}"),
        }
    })
}

/// Replaces repositories, archives and folders by the names that stand for them.
fn name_externals(
    value: &mut Value,
    key: &str,
    declared: &HashMap<PackageName, StackString>,
    folder: Option<&Path>,
    registry: &Registry<'_>,
) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                name_externals(value, key, declared, folder, registry);
            }
        }
        Value::String(text) => {
            // Names without a declaration are errors of the parser.
            let referred = text.strip_prefix('$').and_then(|name| declared.get(name));
            let expected = referred.map_or(text.as_str(), |it| it.as_str());
            if text.starts_with('$') && referred.is_none() {
                return;
            }
            let specifier = Specifier::parse(expected);
            if specifier != Specifier::Registry {
                let declared = ["overrides", key, expected].map(str::to_owned);
                let name = registry.add_external(specifier, folder, declared);
                *text = format!("npm:{name}@latest");
            }
        }
        _ => {}
    }
}

/// Leaves the version of the package `name` as it was asked for. Overrides for what it depends on
/// stay.
pub(crate) fn without_root(overrides: NpmOverrides, name: &str) -> NpmOverrides {
    let rules = overrides.rules.into_iter().map(|rule| {
        if rule.name.as_str() != name {
            return rule;
        }
        Arc::new(NpmOverrideRule {
            value: NpmOverrideValue::Inherited,
            ..(*rule).clone()
        })
    });
    NpmOverrides {
        rules: rules.collect(),
    }
}
