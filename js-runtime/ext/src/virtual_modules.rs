//! Modules that extensions import without installing them: their names, and the files behind them.
//! All of them are in the binary.

use deno_core::{Extension, ExtensionFileSource};

include!(concat!(env!("OUT_DIR"), "/virtual_modules.rs"));

/// Both scopes that pi has been published under.
pub const SCOPES: [&str; 2] = ["@mariozechner", "@earendil-works"];

/// Name that leads to another module under the newer scope.
const NEWER_SCOPE_MODULE: (&str, &str) = (
    "@earendil-works/pi-coding-agent",
    "pi:pi-coding-agent/newer-scope.ts",
);

/// Names after the scope, and their modules.
const OWN_MODULES: &[(&str, &str)] = &[
    ("pi-coding-agent", "pi:pi-coding-agent.ts"),
    ("pi-coding-agent/test", "pi:pi-coding-agent/test.ts"),
    ("pi-tui", "pi:pi-tui.ts"),
    ("pi-agent-core", "pi:pi-agent-core.ts"),
    ("pi-ai", "pi:pi-ai.ts"),
    // Newer versions split the root: everything that was there before is `compat`.
    ("pi-ai/compat", "pi:pi-ai.ts"),
    ("pi-ai/models", "pi:pi-ai.ts"),
    ("pi-ai/oauth", "pi:pi-ai/oauth.ts"),
    ("pi-ai/providers/all", "pi:pi-ai.ts"),
    // One wire API each; the names that they export are in the root as well.
    ("pi-ai/anthropic", "pi:pi-ai.ts"),
    ("pi-ai/azure-openai-responses", "pi:pi-ai.ts"),
    ("pi-ai/bedrock-provider", "pi:pi-ai.ts"),
    ("pi-ai/google", "pi:pi-ai.ts"),
    ("pi-ai/google-gemini-cli", "pi:pi-ai.ts"),
    ("pi-ai/google-vertex", "pi:pi-ai.ts"),
    ("pi-ai/mistral", "pi:pi-ai.ts"),
    ("pi-ai/openai-codex-responses", "pi:pi-ai.ts"),
    ("pi-ai/openai-completions", "pi:pi-ai.ts"),
    ("pi-ai/openai-responses", "pi:pi-ai.ts"),
];

/// Returns pi's module for the `name` that an extension imports, if there is one.
pub fn virtual_module(name: &str) -> Option<&'static str> {
    if let Ok(found) = NPM_MODULES.binary_search_by_key(&name, |(name, _)| name) {
        return Some(NPM_MODULES[found].1);
    }
    let (scope, rest) = name.split_once('/')?;
    if !SCOPES.contains(&scope) {
        return None;
    }
    if name == NEWER_SCOPE_MODULE.0 {
        return Some(NEWER_SCOPE_MODULE.1);
    }
    OWN_MODULES
        .iter()
        .find(|(name, _)| *name == rest)
        .map(|(_, specifier)| *specifier)
}

/// Returns every name that [`virtual_module`] knows, with its module.
pub fn virtual_modules() -> impl Iterator<Item = (String, &'static str)> {
    let own = SCOPES.iter().flat_map(|scope| {
        (OWN_MODULES.iter()).filter_map(move |(name, _)| {
            let name = format!("{scope}/{name}");
            virtual_module(&name).map(|specifier| (name, specifier))
        })
    });
    let npm = NPM_MODULES
        .iter()
        .map(|(name, specifier)| (name.to_string(), *specifier));
    own.chain(npm)
}

/// Adds the files to an extension. They are read while the snapshot is made: modules that the
/// bridge imports are evaluated then; the crate of the snapshot keeps the rest as text.
pub(crate) fn add_files(extension: &mut Extension) {
    extension.lazy_loaded_esm_files.to_mut().extend(
        FILES
            .iter()
            .map(|(specifier, path)| ExtensionFileSource::loaded_during_snapshot(specifier, path)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_a_file() {
        for (name, specifier) in virtual_modules() {
            assert!(
                FILES.iter().any(|(file, _)| *file == specifier),
                "{name} leads to {specifier}, which is not in the binary"
            );
            assert_eq!(virtual_module(&name), Some(specifier), "{name}");
        }
    }

    #[test]
    fn both_scopes_and_typebox_versions_are_known() {
        let found = [
            "@mariozechner/pi-tui",
            "@earendil-works/pi-tui",
            "@earendil-works/pi-ai/compat",
            "@earendil-works/pi-coding-agent",
            "@mariozechner/pi-coding-agent",
            "@mariozechner/pi-ai/oauth",
            "@sinclair/typebox",
            "@sinclair/typebox/value",
            "typebox",
            "typebox/compile",
            "@mariozechner/pi-unknown",
            "@sinclair",
            "yaml",
        ]
        .map(virtual_module);
        assert_eq!(
            found,
            [
                Some("pi:pi-tui.ts"),
                Some("pi:pi-tui.ts"),
                Some("pi:pi-ai.ts"),
                Some("pi:pi-coding-agent/newer-scope.ts"),
                Some("pi:pi-coding-agent.ts"),
                Some("pi:pi-ai/oauth.ts"),
                Some("pi:npm/sinclair-typebox/index.js"),
                Some("pi:npm/sinclair-typebox/value.js"),
                Some("pi:npm/typebox/index.js"),
                Some("pi:npm/typebox/compile.js"),
                None,
                None,
                None,
            ]
        );
    }
}
