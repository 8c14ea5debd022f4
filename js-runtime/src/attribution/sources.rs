//! Records the sources from which the code of each extension was loaded, so that it can be loaded
//! again although its files have changed or are gone. Packages are not recorded.

use std::collections::HashMap;
use std::sync::Arc;

use deno_core::ModuleSpecifier;
use serde::{Deserialize, Serialize};

/// Start of the query that distinguishes copies of a module.
pub(crate) const COPY_QUERY: &str = "copy=";

/// The files of one extension as they were loaded, and the modules that their imports resolved to.
/// URLs are without the queries of copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    entry: Option<String>,
    /// Texts of files by URL.
    texts: HashMap<String, Arc<str>>,
    /// Targets by importing module, then by specifier.
    targets: HashMap<String, HashMap<String, String>>,
}

impl Sources {
    /// Returns whether the extension can be loaded from these sources.
    pub fn is_complete(&self) -> bool {
        let entry = self.entry.as_ref();
        entry.is_some_and(|entry| self.texts.contains_key(entry))
    }

    /// Records the module that the load begins with.
    pub(super) fn note_entry(&mut self, entry: &ModuleSpecifier) {
        self.entry = recorded_url(entry);
    }

    /// Records the text of a module.
    pub(super) fn note_text(&mut self, module: &ModuleSpecifier, text: &Arc<str>) {
        if let Some(url) = recorded_url(module) {
            self.texts.insert(url, text.clone());
        }
    }

    /// Records the module that an import resolved to.
    pub(super) fn note_target(
        &mut self,
        importer: &ModuleSpecifier,
        specifier: &str,
        target: &ModuleSpecifier,
    ) {
        if let Some((importer, target)) = recorded_url(importer).zip(recorded_url(target)) {
            let targets = self.targets.entry(importer).or_default();
            targets.insert(specifier.to_owned(), target);
        }
    }

    /// Returns the entry module, if its text is recorded.
    pub(crate) fn entry(&self) -> Option<ModuleSpecifier> {
        let entry = self.entry.as_ref().filter(|_| self.is_complete())?;
        ModuleSpecifier::parse(entry).ok()
    }

    /// Returns the recorded text of a module.
    pub(crate) fn text(&self, module: &ModuleSpecifier) -> Option<Arc<str>> {
        self.texts.get(&recorded_url(module)?).cloned()
    }

    /// Returns the target of an import, if its text is recorded.
    pub(crate) fn target(
        &self,
        importer: &ModuleSpecifier,
        specifier: &str,
    ) -> Option<ModuleSpecifier> {
        let targets = self.targets.get(&recorded_url(importer)?)?;
        let target = targets.get(specifier)?;
        let target = self.texts.contains_key(target).then_some(target)?;
        ModuleSpecifier::parse(target).ok()
    }
}

/// Returns the URL of a module without the query of a copy. `None` for a module with another query,
/// which is read from the disk each time.
fn recorded_url(module: &ModuleSpecifier) -> Option<String> {
    match module.query() {
        None => Some(module.to_string()),
        Some(query) if query.starts_with(COPY_QUERY) => {
            let mut url = module.clone();
            url.set_query(None);
            Some(url.into())
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_module_share_their_record() {
        let url = |text: &str| ModuleSpecifier::parse(text).unwrap();
        let (entry, helper) = (url("file:///a.ts?copy=3"), url("file:///lib/b.ts"));
        let mut sources = Sources::default();
        sources.note_entry(&entry);
        sources.note_target(&entry, "./lib/b", &helper);
        assert!(!sources.is_complete() && sources.entry().is_none());
        assert_eq!(sources.target(&entry, "./lib/b"), None, "it has no text");
        sources.note_text(&entry, &"entry".into());
        sources.note_text(&helper, &"helper".into());
        sources.note_text(&url("file:///c.ts?v=2"), &"fresh".into());
        assert_eq!(sources.entry(), Some(url("file:///a.ts")));
        let other = url("file:///a.ts?copy=1");
        assert_eq!(sources.target(&other, "./lib/b"), Some(helper));
        assert_eq!(sources.text(&other).as_deref(), Some("entry"));
        assert_eq!(sources.text(&url("file:///c.ts?v=2")), None);
    }
}
