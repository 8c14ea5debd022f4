//! Resolves the dependencies of one package: which versions, and what each of them uses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use deno_npm::NpmPackageId;
use deno_npm::registry::{NpmRegistryApi, NpmRegistryPackageInfoLoadError};
use deno_npm::resolution::{
    AddPkgReqsOptions, NewestDependencyDate, NewestDependencyDateOptions, NpmOverrides,
    NpmPackageVersionResolutionError, NpmResolutionError, NpmResolutionSnapshot,
    NpmVersionResolver, TrustPolicyOptions,
};
use deno_semver::package::PackageReq;
use deno_semver::{StackString, VersionReq};

use crate::error::NpmError;
use crate::names;
use crate::platform::Systems;
use crate::registry::{Content, Registry};

/// Optional dependencies that may be missing in a registry before the resolution is given up.
const MAX_ABSENT: usize = 50;

/// The package to install.
#[derive(Clone, Debug)]
pub enum Root {
    /// A package of a registry, with a version, range or tag.
    Package { name: String, range: String },
    /// A folder with a manifest, such as a clone.
    Folder(PathBuf),
}

/// The resolved packages. The root is the first.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) content: Content,
    /// Dependencies by the name under which the package imports them.
    pub(crate) uses: BTreeMap<String, Use>,
    pub(crate) bundled: Vec<String>,
    pub(crate) systems: Systems,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) node: usize,
    pub(crate) optional: bool,
}

/// Conditions for the choice of versions.
pub(crate) struct Choice<'a> {
    /// Versions that were published later are not chosen.
    pub(crate) newest: Option<DateTime<Utc>>,
    /// Names to which that does not apply.
    pub(crate) exempt: &'a BTreeSet<StackString>,
    pub(crate) overrides: NpmOverrides,
}

pub(crate) async fn resolve(
    registry: &Registry<'_>,
    root: &Root,
    choice: Choice<'_>,
) -> Result<Graph, NpmError> {
    let Choice {
        newest,
        exempt,
        overrides,
    } = choice;
    let (name, range) = match root {
        Root::Package { name, range } => (name.clone(), range.as_str()),
        Root::Folder(folder) => (registry.name_of_root(folder), "latest"),
    };
    let version_req = VersionReq::parse_from_npm(range)
        .map_err(|error| NpmError::Resolution(format!("{name}@{range}: {error}")))?;
    let wanted = PackageReq {
        name: name.as_str().into(),
        version_req,
    };
    let versions = NpmVersionResolver {
        link_packages: Arc::default(),
        newest_dependency_date_options: NewestDependencyDateOptions {
            date: newest.map(NewestDependencyDate),
            exclude: exempt.clone(),
            exclude_prefixes: Vec::new(),
        },
        overrides: Arc::new(overrides),
        trust_policy: TrustPolicyOptions::default(),
    };
    let snapshot = loop {
        let options = AddPkgReqsOptions {
            package_reqs: std::slice::from_ref(&wanted),
            version_resolver: &versions,
            should_dedup: true,
        };
        let empty = NpmResolutionSnapshot::default();
        let error = match empty
            .add_pkg_reqs(registry, options, None)
            .await
            .into_result()
        {
            Ok(snapshot) => break snapshot,
            Err(error) => error,
        };
        let NpmResolutionError::Registry(NpmRegistryPackageInfoLoadError::PackageNotExists {
            package_name,
        }) = &error
        else {
            return Err(registry
                .take_error()
                .unwrap_or_else(|| describe(&error, newest)));
        };
        let is_root = *package_name == name;
        // The next attempt is without it where it is optional.
        if is_root || registry.absent_count() >= MAX_ABSENT || !registry.leave_out(package_name) {
            return Err(registry
                .take_error()
                .unwrap_or_else(|| describe(&error, newest)));
        }
        let _ = registry.take_error();
    };
    let mut packages = snapshot.as_valid_serialized().into_serialized();
    packages.dedup_equivalent_peer_variants();
    let root_id = packages.root_packages.get(&wanted).cloned();
    let root_id = root_id.ok_or_else(|| NpmError::Resolution(format!("{name} was not found")))?;
    let mut packages = packages.packages;
    // The order must not depend on hashes.
    packages.sort_by_cached_key(|package| {
        let id = package.id.as_serialized().to_string();
        (package.id != root_id, id)
    });
    let indices: HashMap<NpmPackageId, usize> = packages
        .iter()
        .enumerate()
        .map(|(index, package)| (package.id.clone(), index))
        .collect();
    let mut nodes = Vec::with_capacity(packages.len());
    for package in &packages {
        let known_as = package.id.nv.name.as_str();
        let version = &package.id.nv.version;
        // Loads again what was left out of the memory when an attempt failed.
        registry
            .package_info(known_as)
            .await
            .map_err(|error| NpmError::Resolution(error.to_string()))?;
        let metadata = registry.known(known_as);
        let metadata = metadata.expect("the resolver has just loaded it");
        let (own_name, content) = metadata.content(version);
        let content = content.ok_or_else(|| {
            NpmError::Resolution(format!(
                "{known_as}@{version} has no archive in the registry"
            ))
        })?;
        let mut uses = BTreeMap::new();
        for (alias, id) in &package.dependencies {
            names::checked(alias, known_as)?;
            let optional = package.optional_dependencies.contains(alias);
            let node = indices[id];
            uses.insert(alias.to_string(), Use { node, optional });
        }
        nodes.push(Node {
            name: own_name.unwrap_or(known_as).to_owned(),
            version: version.to_string(),
            content,
            uses,
            bundled: metadata.bundled(version),
            systems: metadata.systems(version),
        });
    }
    Ok(Graph { nodes })
}

/// Describes an error of the resolver in words of this program.
fn describe(error: &NpmResolutionError, newest: Option<DateTime<Utc>>) -> NpmError {
    let too_new = |text: String| NpmError::TooNew(text);
    match error {
        NpmResolutionError::Resolution(
            NpmPackageVersionResolutionError::DistTagVersionTooNew {
                package_name,
                version,
                publish_date,
                ..
            },
        ) => too_new(format!(
            "{package_name} {version} was published only at {}, and no older version fits",
            publish_date.format("%Y-%m-%d %H:%M UTC")
        )),
        NpmResolutionError::Resolution(
            NpmPackageVersionResolutionError::VersionReqNotMatched {
                package_name,
                version_req,
                newest_dependency_date: Some(_),
            },
        ) => too_new(format!(
            "All versions of {package_name} that fit {version_req} were published after {}",
            newest.unwrap_or_default().format("%Y-%m-%d %H:%M UTC")
        )),
        other => NpmError::Resolution(other.to_string()),
    }
}
