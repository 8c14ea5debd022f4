//! The source maps that packages bring: looked for when an error names one of their files.

use data_url::DataUrl;
use deno_core::ModuleSpecifier;
use deno_core::sourcemap::{self, DecodedMap};
use deno_path_util::url_to_file_path;
use pi_base::regular_file;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// No map is as large, and what errors are told with is no reason to run out of memory.
const LARGEST: u64 = 64 << 20;

/// The map at `url`, if the sources that it speaks of are there, or in it: a place in a file
/// that nobody has helps less than one in the compiled file.
pub(super) fn external(url: &str) -> Option<Vec<u8>> {
    let url = ModuleSpecifier::parse(url).ok()?;
    if url.scheme() == "data" {
        // Its sources are beside the file that has it.
        let (text, _fragment) = DataUrl::process(url.as_str()).ok()?.decode_to_vec().ok()?;
        return Some(flat(text));
    }
    let text = flat(regular_file::read_at_most(&url_to_file_path(&url).ok()?, LARGEST).ok()?);
    // deno_core asks for the maps of all modules that import something, and most packages
    // have no sources: their maps are not read to the end.
    let named: Named = serde_json::from_slice(&text).ok()?;
    // The compiler of TypeScript writes an empty one.
    let root = named.source_root.as_deref().filter(|it| !it.is_empty());
    let root = root.map(|root| format!("{}/", root.trim_end_matches('/')));
    // They are relative to the map, not to the file that was made of them.
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

/// One map of those in it, if it is made of several, as bundlers write them: deno_core reads no
/// others.
fn flat(text: Vec<u8>) -> Vec<u8> {
    let flattened = || match sourcemap::decode_slice(&text).ok()? {
        DecodedMap::Index(index) => {
            let mut flat = Vec::new();
            index.flatten().ok()?.to_writer(&mut flat).ok()?;
            Some(flat)
        }
        _ => None,
    };
    let has_sections = memchr::memmem::find(&text, b"\"sections\"").is_some();
    let flattened = has_sections.then(flattened).flatten();
    flattened.unwrap_or(text)
}

/// The part of a map that says what it was made of.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    source_root: Option<String>,
    sources: Vec<Option<String>>,
    #[serde(default)]
    sources_content: Vec<Option<IgnoredAny>>,
}

impl Named {
    fn has_content(&self) -> bool {
        self.sources_content.iter().any(Option::is_some)
    }
}

/// The map that a CommonJS file names: deno_core looks for those of ES modules.
pub(super) fn of_script(file_name: &str) -> Option<Vec<u8>> {
    const NAME: &str = "sourceMappingURL=";
    let file = ModuleSpecifier::parse(file_name).ok()?;
    let text = regular_file::read_at_most(&url_to_file_path(&file).ok()?, LARGEST).ok()?;
    let text = String::from_utf8_lossy(&text);
    let at = text.rfind(NAME)?;
    let is_comment = ["//# ", "//@ "].iter().any(|c| text[..at].ends_with(c));
    let url = text[at + NAME.len()..].split_whitespace().next()?;
    external(file.join(url).ok().filter(|_| is_comment)?.as_str())
}
