//! Chooses the folder of each package, such that Node's search through the folders above finds
//! the right one. A package is unpacked once, as close to the root as possible; where another
//! version is in the way of a further user, that user gets a link.

use std::collections::{HashMap, VecDeque};

use crate::registry::Content;
use crate::resolve::Graph;
use crate::tree::{PlacedPackage, Tree};

/// A folder with a package.
struct Location {
    /// The folder below the root, empty for the root.
    path: String,
    /// The location whose `node_modules` is searched next.
    parent: Option<usize>,
    node: usize,
    /// Targets of imports from this folder or from below, by name.
    targets: HashMap<String, ImportTarget>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ImportTarget {
    Node(usize),
    /// A dependency within the archive of the location's package.
    Bundled,
}

/// Assigns each package of the graph a folder below `node_modules`.
pub(crate) fn compute_layout(graph: &Graph) -> Tree {
    let mut layout = Layout {
        graph,
        locations: Vec::new(),
        of_node: HashMap::new(),
        pending: VecDeque::new(),
        placed: Vec::new(),
    };
    let required = required(graph);
    layout.add_location(0, String::new(), None);
    layout.placed.push((0, String::new(), None));
    while let Some(location) = layout.pending.pop_front() {
        let node = &graph.nodes[layout.locations[location].node];
        for (alias, used) in &node.uses {
            layout.make_importable(location, alias, used.node);
        }
    }
    let packages = layout.placed.iter().map(|(node, path, link)| {
        let package = &graph.nodes[*node];
        let (resolved, integrity) = match &package.content {
            Content::Archive { url, integrity } => (url.clone(), integrity.clone()),
            Content::Git { url, commit } => (format!("git+{url}#{commit}"), None),
            Content::Folder(path) => (format!("file:{path}"), None),
            Content::File { path, integrity } => (format!("file:{path}"), Some(integrity.clone())),
        };
        PlacedPackage {
            path: path.clone(),
            name: package.name.clone(),
            version: package.version.clone(),
            resolved,
            integrity,
            link: link.clone(),
            optional: !required[*node],
            systems: package.systems.clone(),
        }
    });
    let mut packages: Vec<PlacedPackage> = packages.collect();
    packages.sort_by(|a, b| a.path.cmp(&b.path));
    Tree { packages }
}

/// Returns for each node whether the root needs it.
fn required(graph: &Graph) -> Vec<bool> {
    let mut required = vec![false; graph.nodes.len()];
    let mut pending = vec![0];
    while let Some(node) = pending.pop() {
        if std::mem::replace(&mut required[node], true) {
            continue;
        }
        let uses = graph.nodes[node].uses.values();
        pending.extend(uses.filter(|used| !used.optional).map(|used| used.node));
    }
    required
}

struct Layout<'a> {
    graph: &'a Graph,
    locations: Vec<Location>,
    of_node: HashMap<usize, usize>,
    pending: VecDeque<usize>,
    /// Node, path and the path that it is a link to.
    placed: Vec<(usize, String, Option<String>)>,
}

impl Layout<'_> {
    fn add_location(&mut self, node: usize, path: String, parent: Option<usize>) -> usize {
        let bundled = self.graph.nodes[node].bundled.iter();
        let targets = bundled
            .map(|name| (name.clone(), ImportTarget::Bundled))
            .collect();
        let index = self.locations.len();
        self.locations.push(Location {
            path,
            parent,
            node,
            targets,
        });
        self.of_node.insert(node, index);
        self.pending.push_back(index);
        index
    }

    /// Makes an import of `alias` in a location find a node.
    fn make_importable(&mut self, from: usize, alias: &str, node: usize) {
        let mut passed = Vec::new();
        let mut current = Some(from);
        let mut is_there = false;
        while let Some(index) = current {
            let location = &self.locations[index];
            match location.targets.get(alias) {
                Some(ImportTarget::Node(found)) if *found == node => {
                    is_there = true;
                    break;
                }
                Some(_) => break,
                None => passed.push(index),
            }
            current = location.parent;
        }
        for index in &passed {
            let targets = &mut self.locations[*index].targets;
            targets.insert(alias.to_owned(), ImportTarget::Node(node));
        }
        let (false, Some(highest)) = (is_there, passed.last()) else {
            return;
        };
        let above = &self.locations[*highest].path;
        let path = match above.is_empty() {
            true => format!("node_modules/{alias}"),
            false => format!("{above}/node_modules/{alias}"),
        };
        let existing = self.of_node.get(&node).copied();
        let existing = existing.or_else(|| {
            // A folder of the root stays where it is.
            let Content::Folder(folder) = &self.graph.nodes[node].content else {
                return None;
            };
            self.placed.push((node, folder.clone(), None));
            Some(self.add_location(node, folder.clone(), Some(0)))
        });
        match existing {
            Some(location) => {
                let target = self.locations[location].path.clone();
                self.placed.push((node, path, Some(target)));
            }
            None => {
                self.placed.push((node, path.clone(), None));
                self.add_location(node, path, Some(*highest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::platform::Systems;
    use crate::resolve::{Node, Use};

    /// Makes a graph of lines such as `a@1: b@1 c=d@2`; the first is the root.
    fn graph(lines: &[&str]) -> Graph {
        let ids: Vec<&str> = lines
            .iter()
            .map(|it| it.split(':').next().unwrap())
            .collect();
        let nodes = lines.iter().map(|line| {
            let (id, uses) = line.split_once(':').unwrap();
            let uses = uses.split_whitespace().map(|text| {
                let optional = text.ends_with('?');
                let text = text.trim_end_matches('?');
                let (alias, id) = match text.split_once('=') {
                    Some((alias, id)) => (alias, id),
                    None => (text.split('@').next().unwrap(), text),
                };
                let node = ids.iter().position(|known| *known == id).unwrap();
                (alias.to_owned(), Use { node, optional })
            });
            let (name, version) = id.split_once('@').unwrap();
            let content = match version.strip_prefix('/') {
                Some(folder) => Content::Folder(folder.to_owned()),
                None => Content::Archive {
                    url: String::new(),
                    integrity: None,
                },
            };
            Node {
                name: name.to_owned(),
                version: version.to_owned(),
                content,
                uses: uses.collect::<BTreeMap<_, _>>(),
                bundled: Vec::new(),
                systems: Systems::default(),
            }
        });
        Graph {
            nodes: nodes.collect(),
        }
    }

    fn lines(tree: &Tree) -> Vec<String> {
        let packages = tree.packages.iter();
        packages
            .map(|it| {
                let link = it.link.as_ref().map(|link| format!(" -> {link}"));
                let optional = if it.optional { "?" } else { "" };
                let link = link.unwrap_or_default();
                format!("{} {}@{}{optional}{link}", it.path, it.name, it.version)
            })
            .collect()
    }

    /// Asserts that Node's search finds what each package uses.
    fn assert_found(graph: &Graph, tree: &Tree) {
        let at: HashMap<&str, &PlacedPackage> = tree
            .packages
            .iter()
            .map(|it| (it.path.as_str(), it))
            .collect();
        for package in tree.distinct() {
            let node = graph
                .nodes
                .iter()
                .find(|node| node.name == package.name && node.version == package.version);
            for (alias, used) in &node.unwrap().uses {
                let mut folder = Some(package.path.as_str());
                let found = loop {
                    let here = folder.unwrap_or_else(|| panic!("{alias} of {}", package.path));
                    let path = match here {
                        "" => format!("node_modules/{alias}"),
                        here => format!("{here}/node_modules/{alias}"),
                    };
                    if let Some(found) = at.get(path.as_str()) {
                        break found;
                    }
                    folder = match here {
                        "" => None,
                        here => Some(here.rsplit_once('/').map_or("", |(above, _)| above)),
                    };
                };
                let wanted = &graph.nodes[used.node];
                let found = (&found.name, &found.version);
                assert_eq!(
                    found,
                    (&wanted.name, &wanted.version),
                    "{alias} of {}",
                    package.path
                );
            }
        }
    }

    #[test]
    fn packages_are_placed_close_to_the_root() {
        let graph = graph(&["r@1: a@1 b@1", "a@1: c@1", "b@1: c@2", "c@1:", "c@2:"]);
        let tree = compute_layout(&graph);
        assert_found(&graph, &tree);
        assert_eq!(
            lines(&tree),
            [
                " r@1",
                "node_modules/a a@1",
                "node_modules/b b@1",
                "node_modules/b/node_modules/c c@2",
                "node_modules/c c@1",
            ]
        );
    }

    #[test]
    fn cycles_of_several_versions_end_in_links() {
        let graph = graph(&["r@1: a@1", "a@1: b@1", "b@1: a@2", "a@2: b@2", "b@2: a@1"]);
        let tree = compute_layout(&graph);
        assert_found(&graph, &tree);
        let links = tree.packages.iter().filter(|it| it.link.is_some()).count();
        assert!(links >= 1, "{:?}", lines(&tree));
        assert_eq!(tree.distinct().count(), 5);
    }

    #[test]
    fn a_second_user_of_a_hidden_version_gets_a_link() {
        let graph = graph(&[
            "r@1: a@1 b@1 c@1 d@1",
            "a@1:",
            "b@1: a@2",
            "c@1: a@2",
            "d@1: x=a@2?",
            "a@2:",
        ]);
        let tree = compute_layout(&graph);
        assert_found(&graph, &tree);
        let lines = lines(&tree);
        let link = "node_modules/c/node_modules/a a@2 -> node_modules/b/node_modules/a";
        assert!(lines.contains(&link.to_owned()), "{lines:?}");
        let alias = "node_modules/x a@2 -> node_modules/b/node_modules/a";
        assert!(lines.contains(&alias.to_owned()), "{lines:?}");
    }

    #[test]
    fn folders_of_a_workspace_are_linked() {
        let graph = graph(&[
            "r@1: w@/packages/w v@/packages/v c@1",
            "w@/packages/w: v@/packages/v c@2",
            "v@/packages/v: c@1",
            "c@1:",
            "c@2: o@1?",
            "o@1:",
        ]);
        let tree = compute_layout(&graph);
        assert_found(&graph, &tree);
        let lines = lines(&tree);
        for line in [
            "node_modules/w w@/packages/w -> packages/w",
            "packages/w w@/packages/w",
            "packages/w/node_modules/c c@2",
            "node_modules/o o@1?",
        ] {
            assert!(lines.contains(&line.to_owned()), "{line}: {lines:?}");
        }
    }
}
