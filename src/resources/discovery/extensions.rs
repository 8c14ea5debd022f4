//! The modules to load as extensions, in load order.

pub use crate::discovery::{
    FoundResources as ExtensionPaths, ResourcePath as ExtensionPath, ResourceSources,
};

use crate::paths::ResourceKind;

/// Returns the paths of the extensions. A path given by `-e` may be a folder without resources,
/// which is imported as a module itself.
pub fn find_extensions(sources: &ResourceSources<'_>) -> ExtensionPaths {
    sources.find(ResourceKind::Extensions)
}
