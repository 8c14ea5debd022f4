//! Measures how much of V8's heap each extension alone keeps alive, from a heap snapshot. Objects
//! that can be reached without passing through the code of an extension have no owner (the program,
//! and what is stored in its globals). Of the rest, an object belongs to an extension if it can be
//! reached only from the functions, contexts and scripts of that one.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use deno_core::v8;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum heap size in bytes. A snapshot of a larger heap would block extensions for long and take
/// several times as much memory.
const MAX_HEAP_BYTES: usize = 256 << 20;

/// Sizes in bytes of V8's heap, without garbage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetainedHeap {
    /// Bytes that would be freed without the extension, by its id.
    pub by_extension: BTreeMap<u32, usize>,
    /// Bytes that several extensions keep alive.
    pub shared: usize,
}

/// Measures the heap of an isolate. `owner` maps the name of a script to its extension. Takes about
/// half a second for 20 MB, in which no JavaScript runs.
pub(crate) fn retained(
    isolate: &mut v8::Isolate,
    owner: impl Fn(&str) -> Option<u32>,
) -> Result<RetainedHeap, String> {
    let used = isolate.get_heap_statistics().used_heap_size();
    if used > MAX_HEAP_BYTES {
        return Err(format!(
            "the heap has {} MB; it is measured by extension up to {} MB",
            used >> 20,
            MAX_HEAP_BYTES >> 20
        ));
    }
    let snapshot =
        take_snapshot(isolate).map_err(|error| format!("V8's snapshot of the heap: {error}"))?;
    Graph::new(snapshot)
        .map(|graph| graph.retained(owner))
        .ok_or_else(|| "V8's snapshot of the heap has another form than expected".into())
}

/// Parses the snapshot while V8 writes it: its text is several times as large.
fn take_snapshot(isolate: &mut v8::Isolate) -> Result<Snapshot, serde_json::Error> {
    let (chunks, received) = sync_channel::<Vec<u8>>(16);
    thread::scope(|scope| {
        let read = scope.spawn(|| {
            let chunks = ChunkReader {
                received,
                chunk: Vec::new(),
                at: 0,
            };
            serde_json::from_reader(io::BufReader::with_capacity(1 << 16, chunks))
        });
        isolate.take_heap_snapshot(|chunk| chunks.send(chunk.to_vec()).is_ok());
        drop(chunks);
        read.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct ChunkReader {
    received: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    at: usize,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            match self.received.recv() {
                Ok(chunk) => (self.chunk, self.at) = (chunk, 0),
                Err(_) => return Ok(0),
            }
        }
        let read = (&self.chunk[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// The format of V8's `.heapsnapshot` files: rows of numbers, whose columns are named.
#[derive(Deserialize)]
struct Snapshot {
    snapshot: Head,
    nodes: Vec<SaturatingU32>,
    edges: Vec<SaturatingU32>,
    strings: Vec<String>,
}

#[derive(Deserialize)]
struct Head {
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    node_fields: Vec<String>,
    node_types: Vec<FieldTypes>,
    edge_fields: Vec<String>,
    edge_types: Vec<FieldTypes>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FieldTypes {
    OneOf(Vec<String>),
    Plain(de::IgnoredAny),
}

impl FieldTypes {
    fn number(&self, name: &str) -> Option<u32> {
        match self {
            Self::OneOf(names) => Some(names.iter().position(|it| it == name)? as u32),
            Self::Plain(_) => None,
        }
    }
}

/// A number whose values above the maximum become the maximum.
#[derive(Clone, Copy)]
struct SaturatingU32(u32);

impl<'de> Deserialize<'de> for SaturatingU32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Saturating;
        impl Visitor<'_> for Saturating {
            type Value = SaturatingU32;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SaturatingU32, E> {
                Ok(SaturatingU32(number.try_into().unwrap_or(u32::MAX)))
            }
        }
        deserializer.deserialize_u64(Saturating)
    }
}

/// Nodes are identified by their index. The edges of one node are contiguous.
struct Graph {
    strings: Vec<String>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

struct Node {
    kind: Kind,
    name: u32,
    size: u32,
    /// Index of the node's first edge.
    first: u32,
    end: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Closure,
    Object,
    Module,
    Other,
}

struct Edge {
    name: Option<u32>,
    to: u32,
}

/// Marks a node without an owner.
const NO_OWNER: u32 = u32::MAX;
/// Marks a node of several extensions.
const SHARED_OWNER: u32 = u32::MAX - 1;

impl Graph {
    fn new(snapshot: Snapshot) -> Option<Self> {
        let Meta {
            node_fields,
            node_types,
            edge_fields,
            edge_types,
        } = snapshot.snapshot.meta;
        let at = |fields: &[String], name: &str| fields.iter().position(|field| field == name);
        let node = |name| at(&node_fields, name);
        let [kind, name, size, count] = [
            node("type")?,
            node("name")?,
            node("self_size")?,
            node("edge_count")?,
        ];
        let kinds = node_types.get(kind)?;
        let kinds = [
            (kinds.number("code")?, Kind::Code),
            (kinds.number("closure")?, Kind::Closure),
            (kinds.number("object")?, Kind::Object),
        ];
        let is_module = |name: &String| name == "system / SourceTextModule";
        let module = snapshot.strings.iter().position(is_module);
        let mut first = 0;
        let nodes = snapshot.nodes.chunks_exact(node_fields.len()).map(|row| {
            let end = first + row[count].0;
            let found = kinds.iter().find(|(number, _)| *number == row[kind].0);
            let is_module = Some(row[name].0 as usize) == module;
            let node = Node {
                kind: match found {
                    Some((_, kind)) => *kind,
                    None if is_module => Kind::Module,
                    None => Kind::Other,
                },
                name: row[name].0,
                size: row[size].0,
                first,
                end,
            };
            first = end;
            node
        });
        let nodes = Vec::from_iter(nodes);

        let edge = |name| at(&edge_fields, name);
        let [kind, name, to] = [edge("type")?, edge("name_or_index")?, edge("to_node")?];
        let types = edge_types.get(kind)?;
        let weak = types.number("weak")?;
        let numbered = [types.number("element")?, types.number("hidden")?];
        let width = node_fields.len() as u32;
        // A weak edge keeps nothing alive, so it leads nowhere here.
        let edges = snapshot
            .edges
            .chunks_exact(edge_fields.len())
            .map(|row| Edge {
                name: (!numbered.contains(&row[kind].0)).then_some(row[name].0),
                to: match row[kind].0 == weak {
                    true => NO_OWNER,
                    false => row[to].0 / width,
                },
            });
        let edges = Vec::from_iter(edges);
        let is_whole = first as usize == edges.len() && !nodes.is_empty();
        is_whole.then_some(Self {
            strings: snapshot.strings,
            nodes,
            edges,
        })
    }

    fn retained(&self, owner: impl Fn(&str) -> Option<u32>) -> RetainedHeap {
        let owners = self.code_owners(owner);
        let mut reached = vec![NO_OWNER; self.nodes.len()];
        let mut seen = vec![NO_OWNER; self.nodes.len()];
        // The first node is the root.
        self.walk(vec![0], |node| {
            let is_new = seen[node] == NO_OWNER && owners[node] == NO_OWNER;
            if is_new {
                seen[node] = SHARED_OWNER;
            }
            is_new
        });
        let mut roots = BTreeMap::<u32, Vec<usize>>::new();
        for (node, owner) in owners
            .iter()
            .enumerate()
            .filter(|(_, owner)| **owner != NO_OWNER)
        {
            roots.entry(*owner).or_default().push(node);
        }
        let mut found = RetainedHeap::default();
        for (&owner, roots) in &roots {
            found.by_extension.insert(owner, 0);
            self.walk(roots.clone(), |node| {
                let is_others = ![NO_OWNER, owner].contains(&owners[node]);
                if seen[node] == SHARED_OWNER || seen[node] == owner || is_others {
                    return false;
                }
                seen[node] = owner;
                reached[node] = match reached[node] {
                    NO_OWNER => owner,
                    _ => SHARED_OWNER,
                };
                true
            });
        }
        for (node, &owner) in self.nodes.iter().zip(&reached) {
            let size = node.size as usize;
            match owner {
                NO_OWNER => {}
                SHARED_OWNER => found.shared += size,
                owner => *found.by_extension.entry(owner).or_default() += size,
            }
        }
        found
    }

    /// Walks the graph from `nodes` along all edges, as long as `visit` returns true for a node.
    fn walk(&self, mut nodes: Vec<usize>, mut visit: impl FnMut(usize) -> bool) {
        nodes.retain(|node| visit(*node));
        while let Some(node) = nodes.pop() {
            for edge in self.edges_of(&self.nodes[node]) {
                let to = edge.to as usize;
                if edge.to != NO_OWNER && visit(to) {
                    nodes.push(to);
                }
            }
        }
    }

    /// Returns the owner of each node that is a script, a function or a context.
    fn code_owners(&self, owner: impl Fn(&str) -> Option<u32>) -> Vec<u32> {
        let mut owners = vec![NO_OWNER; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if node.kind == Kind::Code
                && let Some(name) = self.name(node).strip_prefix("system / Script / ")
            {
                owners[index] = owner(name).unwrap_or(NO_OWNER);
            }
        }
        let of_script = |node: &Node| {
            let script = self
                .edges_of(node)
                .find(|edge| self.is_named(edge, "script"))?;
            Some(script.to as usize)
        };
        for (index, node) in self.nodes.iter().enumerate() {
            if node.kind == Kind::Code
                && self.name(node).starts_with("system / SharedFunctionInfo")
                && let Some(script) = of_script(node)
                && script < owners.len()
                && owners[script] != NO_OWNER
            {
                owners[index] = owners[script];
                for edge in self.edges_of(node).filter(|edge| edge.to != NO_OWNER) {
                    let to = edge.to as usize;
                    if self.name(&self.nodes[to]) == "system / ScopeInfo" {
                        owners[to] = owners[script];
                    }
                }
            }
        }
        // Owners are passed from code to functions, from scopes to contexts, from functions to
        // generators, and from generators to modules.
        for kinds in [
            [Kind::Closure, Kind::Object],
            [Kind::Object, Kind::Object],
            [Kind::Module, Kind::Module],
        ] {
            let found = self.nodes.iter().enumerate().filter_map(|(index, node)| {
                let is_wanted = kinds.contains(&node.kind) && owners[index] == NO_OWNER;
                let knows = |edge: &Edge| {
                    let to = edge.to as usize;
                    (edge.to != NO_OWNER && owners[to] != NO_OWNER).then_some(())?;
                    let is_function = self.nodes[to].kind == Kind::Closure;
                    let is_code = self.nodes[to].kind == Kind::Code;
                    let is_generator = is_function && self.name(node).ends_with("Generator");
                    let is_module =
                        node.kind == Kind::Module && self.nodes[to].kind == Kind::Object;
                    (is_code || is_generator || is_module).then_some(owners[to])
                };
                let owner = self.edges_of(node).find_map(knows).filter(|_| is_wanted)?;
                Some((index, owner))
            });
            for (index, owner) in Vec::from_iter(found) {
                owners[index] = owner;
            }
        }
        owners
    }

    fn edges_of(&self, node: &Node) -> impl Iterator<Item = &Edge> {
        self.edges[node.first as usize..node.end as usize].iter()
    }

    fn name(&self, node: &Node) -> &str {
        self.strings.get(node.name as usize).map_or("", |name| name)
    }

    fn is_named(&self, edge: &Edge, name: &str) -> bool {
        let found = edge.name.and_then(|name| self.strings.get(name as usize));
        found.is_some_and(|found| found == name)
    }
}
