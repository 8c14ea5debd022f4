//! The modules to load as extensions, in the order in which they load.

pub use super::resource_paths::{
    FoundResources as ExtensionPaths, ResourcePath as ExtensionPath, ResourceSources,
};

use super::paths::ResourceKind;

/// A path may be a folder: one given by `-e` that has no resources, which is
/// imported as a module itself.
pub fn find_extensions(sources: &ResourceSources<'_>) -> ExtensionPaths {
    sources.find(ResourceKind::Extensions)
}
