//! The source maps that packages bring: looked for when an error names one of their files.

use data_url::DataUrl;
use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use serde_json::Value;

use super::files::read_text;

/// The map at `url`, if the sources that it speaks of are there, too: a place in a file
/// that nobody has helps less than one in the compiled file.
pub(super) fn external(url: &str) -> Option<Vec<u8>> {
    let url = ModuleSpecifier::parse(url).ok()?;
    if url.scheme() == "data" {
        // Its sources are beside the file that has it.
        let (text, _fragment) = DataUrl::process(url.as_str()).ok()?.decode_to_vec().ok()?;
        return Some(text);
    }
    let text = std::fs::read(url_to_file_path(&url).ok()?).ok()?;
    let mut map: Value = serde_json::from_slice(&text).ok()?;
    let root = map.get("sourceRoot").and_then(Value::as_str);
    let root = root.map(|root| format!("{}/", root.trim_end_matches('/')));
    // They are relative to the map, not to the file that was made of them.
    let mut any_is_there = false;
    for source in map.get_mut("sources")?.as_array_mut()? {
        let Some(path) = source.as_str() else {
            continue;
        };
        let path = format!("{}{path}", root.as_deref().unwrap_or_default());
        let found = url.join(&path).ok()?;
        any_is_there |= url_to_file_path(&found).is_ok_and(|path| path.exists());
        *source = found.to_string().into();
    }
    map.as_object_mut()?.remove("sourceRoot");
    any_is_there.then(|| serde_json::to_vec(&map).ok())?
}

/// The map that a CommonJS file names: deno_core looks for those of ES modules.
pub(super) fn of_script(file_name: &str) -> Option<Vec<u8>> {
    const NAME: &str = "sourceMappingURL=";
    let file = ModuleSpecifier::parse(file_name).ok()?;
    let text = read_text(&url_to_file_path(&file).ok()?).ok()?;
    let at = text.rfind(NAME)?;
    let is_comment = ["//# ", "//@ "].iter().any(|c| text[..at].ends_with(c));
    let url = text[at + NAME.len()..].split_whitespace().next()?;
    external(file.join(url).ok().filter(|_| is_comment)?.as_str())
}
