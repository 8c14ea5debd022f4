//! Plans which version of each extension a load uses: its files as they are, or its last good
//! version, which consists of the sources that it was loaded from last.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use js_runtime::{Imports, Sources};

use super::Extensions;
use super::generation::Generation;
use super::load_error::LoadFailure;
use crate::registry::ExtensionId;
use pi_resources::discovery::extensions::ExtensionPath;

/// The extensions to load, in order, with the version of each. Other members refer to an
/// extension by its index in `paths`.
pub(super) struct LoadPlan {
    pub paths: Vec<ExtensionPath>,
    /// Sources that extensions were loaded from, by path.
    last_good: HashMap<PathBuf, Sources>,
    /// Extensions whose last good version is loaded, with the reason why their files are not.
    kept: BTreeMap<usize, LoadFailure>,
    /// Records of the files that earlier attempts have read or looked for.
    pub imports: Vec<Imports>,
    /// Extensions that stopped the isolate of an earlier attempt and are left out, with the reason.
    stopped: HashMap<usize, LoadFailure>,
}

impl LoadPlan {
    /// Plans to load all extensions from their files; none can be kept.
    pub fn new(paths: Vec<ExtensionPath>) -> Self {
        Self {
            paths,
            last_good: HashMap::new(),
            kept: BTreeMap::new(),
            imports: Vec::new(),
            stopped: HashMap::new(),
        }
    }

    pub fn path(&self, index: usize) -> &Path {
        &self.paths[index].path
    }

    /// Returns whether the extension is to be loaded from its files and has a last good version.
    pub fn can_keep(&self, index: usize) -> bool {
        !self.kept.contains_key(&index) && self.last_good.contains_key(self.path(index))
    }

    /// Returns whether the last good version of the extension is to be loaded.
    pub fn is_kept(&self, index: usize) -> bool {
        self.kept.contains_key(&index)
    }

    /// Plans to load the last good version, because the files do not load.
    pub fn keep(&mut self, index: usize, failure: LoadFailure) {
        self.kept.insert(index, failure);
    }

    /// Plans to leave out an extension that stopped the isolate and has no other version.
    pub fn give_up(&mut self, index: usize, failure: LoadFailure) {
        let path = self.path(index).to_owned();
        self.last_good.remove(&path);
        let first = self.kept.remove(&index).unwrap_or(failure);
        self.stopped.entry(index).or_insert(first);
    }

    /// Returns why the files of a kept extension do not load.
    pub fn kept_because(&self, index: usize) -> Option<&LoadFailure> {
        self.kept.get(&index)
    }

    /// Returns the first failure of an extension that is not loaded at all: it says more than those
    /// that followed.
    pub fn first_failure(&self, index: usize) -> Option<&LoadFailure> {
        self.stopped.get(&index).or_else(|| self.kept.get(&index))
    }

    /// Returns the sources of kept extensions by id.
    pub fn kept_sources(&self) -> HashMap<u32, Sources> {
        let kept = self.kept.keys().filter_map(|&index| {
            let sources = self.last_good.get(self.path(index))?;
            Some((index as ExtensionId, sources.clone()))
        });
        kept.collect()
    }
}

impl Extensions {
    /// Plans a load that replaces `old`. Extensions that `old` has loaded have a last good version,
    /// except `offender`, which stopped the isolate. Extensions in quarantine are loaded from their last
    /// good version.
    pub(super) async fn plan(
        &self,
        paths: Vec<ExtensionPath>,
        old: &Generation,
        offender: Option<&Path>,
    ) -> LoadPlan {
        let mut plan = LoadPlan::new(paths);
        plan.last_good = self.update_last_good(old).await;
        if let Some(offender) = offender {
            plan.last_good.remove(offender);
            self.last_good.lock().remove(offender);
        }
        for index in 0..plan.paths.len() {
            if plan.can_keep(index)
                && let Some(reason) = self.quarantine.reason(plan.path(index))
            {
                plan.keep(index, reason.into());
            }
        }
        plan
    }

    /// Adds the sources of `old` to the last good versions and returns all of them. If the process
    /// of `old` is gone, those of the generation before are the last ones that are known.
    async fn update_last_good(&self, old: &Generation) -> HashMap<PathBuf, Sources> {
        let sources = match &old.runtime {
            Some(runtime) => runtime.sources().await.unwrap_or_default(),
            None => HashMap::new(),
        };
        let loaded: Vec<(ExtensionId, PathBuf)> = {
            let registry = old.host.registry.lock();
            let all = (0..).zip(&registry.extensions);
            let loaded = all.filter(|(_, info)| info.error.is_none());
            loaded
                .map(|(id, info)| (id, PathBuf::from(&info.path)))
                .collect()
        };
        let mut last_good = self.last_good.lock();
        last_good.retain(|path, _| loaded.iter().any(|(_, loaded)| loaded == path));
        for (id, path) in loaded {
            if let Some(sources) = sources.get(&id).filter(|sources| sources.is_complete()) {
                last_good.insert(path, sources.clone());
            }
        }
        last_good.clone()
    }
}
