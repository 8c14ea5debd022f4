//! Source maps of packages: read when an error names one of their files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_url::DataUrl;
use deno_core::ModuleSpecifier;
use deno_core::sourcemap::{self, DecodedMap};
use deno_path_util::url_to_file_path;
use pi_base::regular_file;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// Maximum size of a source map in bytes, so that an error report does not use up the memory.
const MAX_MAP_BYTES: u64 = 64 << 20;

/// Returns the map at `url`, if its sources exist or are contained in it: a position in a missing
/// file helps less than one in the compiled file.
pub(super) fn external_map(url: &str) -> Option<Vec<u8>> {
    let url = ModuleSpecifier::parse(url).ok()?;
    if url.scheme() == "data" {
        // The sources are relative to the file that contains the map.
        let (text, _fragment) = DataUrl::process(url.as_str()).ok()?.decode_to_vec().ok()?;
        return Some(found(text));
    }
    let text =
        found(regular_file::read_at_most(&url_to_file_path(&url).ok()?, MAX_MAP_BYTES).ok()?);
    // deno_core asks for the maps of all modules that import something, and most packages come
    // without sources: their maps are not parsed to the end.
    let named: MapSources = serde_json::from_slice(&text).ok()?;
    // The TypeScript compiler writes an empty root.
    let root = named.source_root.as_deref().filter(|it| !it.is_empty());
    let root = root.map(|root| format!("{}/", root.trim_end_matches('/')));
    // Sources are relative to the map, not to the compiled file.
    let absolute = |path: &str| url.join(&format!("{}{path}", root.as_deref().unwrap_or_default()));
    let sources = named
        .sources
        .iter()
        .map(|path| path.as_deref().map(absolute).transpose());
    let sources: Vec<_> = sources.collect::<Result<_, _>>().ok()?;
    let is_there = |url: &ModuleSpecifier| url_to_file_path(url).is_ok_and(|path| path.exists());
    if !named.has_content() && !sources.iter().flatten().any(is_there) {
        return None;
    }
    let mut map: Map<String, Value> = serde_json::from_slice(&text).ok()?;
    map.insert("sources".into(), json!(sources));
    map.remove("sourceRoot");
    serde_json::to_vec(&map).ok()
}

/// Merges the sections of a map, as bundlers write them: deno_core does not read sections.
fn found(text: Vec<u8>) -> Vec<u8> {
    let found = || match sourcemap::decode_slice(&text).ok()? {
        DecodedMap::Index(index) => {
            let mut found = Vec::new();
            index.flatten().ok()?.to_writer(&mut found).ok()?;
            Some(found)
        }
        _ => None,
    };
    let has_sections = memchr::memmem::find(&text, b"\"sections\"").is_some();
    let found = has_sections.then(found).flatten();
    found.unwrap_or(text)
}

/// The members of a map that name its sources.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MapSources {
    source_root: Option<String>,
    sources: Vec<Option<String>>,
    #[serde(default)]
    sources_content: Vec<Option<IgnoredAny>>,
}

impl MapSources {
    fn has_content(&self) -> bool {
        self.sources_content.iter().any(Option::is_some)
    }
}

/// Returns the map that a CommonJS file names: deno_core looks only for those of ES modules.
pub(super) fn script_map(file_name: &str) -> Option<Vec<u8>> {
    const NAME: &str = "sourceMappingURL=";
    let file = ModuleSpecifier::parse(file_name).ok()?;
    let text = regular_file::read_at_most(&url_to_file_path(&file).ok()?, MAX_MAP_BYTES).ok()?;
    let text = String::from_utf8_lossy(&text);
    let at = text.rfind(NAME)?;
    let is_comment = ["//# ", "//@ "].iter().any(|c| text[..at].ends_with(c));
    let url = text[at + NAME.len()..].split_whitespace().next()?;
    external_map(file.join(url).ok().filter(|_| is_comment)?.as_str())
}

/// Returns code with its map as a comment, and the source in the map. Debuggers find the source
/// that way.
pub(super) fn with_inline_map(code: String, map: Option<Vec<u8>>, source: &str) -> String {
    let map = map.and_then(|map| serde_json::from_slice::<Value>(&map).ok());
    let Some(mut map) = map else {
        return code;
    };
    map["sourcesContent"] = json!([source]);
    let map = STANDARD.encode(map.to_string());
    format!("{code}\n//# sourceMappingURL=data:application/json;base64,{map}\n")
}
