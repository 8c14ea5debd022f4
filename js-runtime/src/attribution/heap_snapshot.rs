//! Whose the heap is: what each extension alone keeps alive, found in a snapshot of V8's heap.
//! Everything that can be reached without passing through somebody's code belongs to nobody
//! (the program, and what hangs on its globals); of the rest, what can be reached from the
//! functions, contexts and scripts of one extension only is that extension's.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use deno_core::v8;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Bytes. To take a snapshot of more would hold up the extensions for long, and take several
/// times as much memory.
const MOST: usize = 256 << 20;

/// Bytes of V8's heap, garbage left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapOwners {
    /// By extension: what would go with it.
    pub of: BTreeMap<u32, usize>,
    /// What several of them keep alive.
    pub shared: usize,
}

/// `owner` tells by a script's name whose it is. Takes about half a second for 20 MB, in which
/// no JavaScript runs.
pub(crate) fn owners(
    isolate: &mut v8::Isolate,
    owner: impl Fn(&str) -> Option<u32>,
) -> Result<HeapOwners, String> {
    let used = isolate.get_heap_statistics().used_heap_size();
    if used > MOST {
        return Err(format!(
            "the heap has {} MB, and is taken apart up to {} MB",
            used >> 20,
            MOST >> 20
        ));
    }
    let snapshot = take(isolate).map_err(|error| format!("V8's snapshot of the heap: {error}"))?;
    Graph::new(snapshot)
        .map(|graph| graph.owners(owner))
        .ok_or_else(|| "V8's snapshot of the heap has another form than expected".into())
}

/// Read while it is written: as text it is several times as large.
fn take(isolate: &mut v8::Isolate) -> Result<Snapshot, serde_json::Error> {
    let (pieces, received) = sync_channel::<Vec<u8>>(16);
    thread::scope(|scope| {
        let read = scope.spawn(|| {
            let pieces = Pieces {
                received,
                piece: Vec::new(),
                at: 0,
            };
            serde_json::from_reader(io::BufReader::with_capacity(1 << 16, pieces))
        });
        isolate.take_heap_snapshot(|piece| pieces.send(piece.to_vec()).is_ok());
        drop(pieces);
        read.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct Pieces {
    received: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            match self.received.recv() {
                Ok(piece) => (self.piece, self.at) = (piece, 0),
                Err(_) => return Ok(0),
            }
        }
        let read = (&self.piece[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// The format of V8's `.heapsnapshot` files: rows of numbers, whose columns are named.
#[derive(Deserialize)]
struct Snapshot {
    snapshot: Head,
    nodes: Vec<Number>,
    edges: Vec<Number>,
    strings: Vec<String>,
}

#[derive(Deserialize)]
struct Head {
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    node_fields: Vec<String>,
    node_types: Vec<Type>,
    edge_fields: Vec<String>,
    edge_types: Vec<Type>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Type {
    OneOf(Vec<String>),
    Plain(de::IgnoredAny),
}

impl Type {
    fn number(&self, name: &str) -> Option<u32> {
        match self {
            Self::OneOf(names) => Some(names.iter().position(|it| it == name)? as u32),
            Self::Plain(_) => None,
        }
    }
}

/// What does not fit counts as the largest that does.
#[derive(Clone, Copy)]
struct Number(u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Saturating;
        impl Visitor<'_> for Saturating {
            type Value = Number;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number.try_into().unwrap_or(u32::MAX)))
            }
        }
        deserializer.deserialize_u64(Saturating)
    }
}

/// By number of the node; those of a node's edges are in a row.
struct Graph {
    strings: Vec<String>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

struct Node {
    kind: Kind,
    name: u32,
    size: u32,
    /// Of its edges.
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

/// Nobody's.
const NONE: u32 = u32::MAX;
/// Several extensions'.
const SHARED: u32 = u32::MAX - 1;

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
        // What is weak keeps nothing alive, and leads nowhere here.
        let edges = snapshot
            .edges
            .chunks_exact(edge_fields.len())
            .map(|row| Edge {
                name: (!numbered.contains(&row[kind].0)).then_some(row[name].0),
                to: match row[kind].0 == weak {
                    true => NONE,
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

    fn owners(&self, owner: impl Fn(&str) -> Option<u32>) -> HeapOwners {
        let owners = self.code_of(owner);
        let mut reached = vec![NONE; self.nodes.len()];
        let mut seen = vec![NONE; self.nodes.len()];
        // The root is the first.
        self.walk(vec![0], |node| {
            let is_new = seen[node] == NONE && owners[node] == NONE;
            if is_new {
                seen[node] = SHARED;
            }
            is_new
        });
        let mut roots = BTreeMap::<u32, Vec<usize>>::new();
        for (node, owner) in owners
            .iter()
            .enumerate()
            .filter(|(_, owner)| **owner != NONE)
        {
            roots.entry(*owner).or_default().push(node);
        }
        let mut found = HeapOwners::default();
        for (&owner, roots) in &roots {
            found.of.insert(owner, 0);
            self.walk(roots.clone(), |node| {
                let is_others = ![NONE, owner].contains(&owners[node]);
                if seen[node] == SHARED || seen[node] == owner || is_others {
                    return false;
                }
                seen[node] = owner;
                reached[node] = match reached[node] {
                    NONE => owner,
                    _ => SHARED,
                };
                true
            });
        }
        for (node, &owner) in self.nodes.iter().zip(&reached) {
            let size = node.size as usize;
            match owner {
                NONE => {}
                SHARED => found.shared += size,
                owner => *found.of.entry(owner).or_default() += size,
            }
        }
        found
    }

    /// From these nodes on, as long as there is somebody who `wants` a node.
    fn walk(&self, mut nodes: Vec<usize>, mut wants: impl FnMut(usize) -> bool) {
        nodes.retain(|node| wants(*node));
        while let Some(node) = nodes.pop() {
            for edge in self.edges_of(&self.nodes[node]) {
                let to = edge.to as usize;
                if edge.to != NONE && wants(to) {
                    nodes.push(to);
                }
            }
        }
    }

    /// Whose script, function or context a node is.
    fn code_of(&self, owner: impl Fn(&str) -> Option<u32>) -> Vec<u32> {
        let mut owners = vec![NONE; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if node.kind == Kind::Code
                && let Some(name) = self.name(node).strip_prefix("system / Script / ")
            {
                owners[index] = owner(name).unwrap_or(NONE);
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
                && owners[script] != NONE
            {
                owners[index] = owners[script];
                for edge in self.edges_of(node).filter(|edge| edge.to != NONE) {
                    let to = edge.to as usize;
                    if self.name(&self.nodes[to]) == "system / ScopeInfo" {
                        owners[to] = owners[script];
                    }
                }
            }
        }
        // Functions know their code, contexts their scope, generators their function, and
        // modules their generator.
        for kinds in [
            [Kind::Closure, Kind::Object],
            [Kind::Object, Kind::Object],
            [Kind::Module, Kind::Module],
        ] {
            let found = self.nodes.iter().enumerate().filter_map(|(index, node)| {
                let is_wanted = kinds.contains(&node.kind) && owners[index] == NONE;
                let knows = |edge: &Edge| {
                    let to = edge.to as usize;
                    (edge.to != NONE && owners[to] != NONE).then_some(())?;
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
