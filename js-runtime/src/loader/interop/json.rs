//! Imports of JSON without an attribute: the content is data, never code.

use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use deno_path_util::url_to_file_path;

use crate::loader::files::to_js_error;

/// Returns the code of a module that exports the content of a JSON file.
pub(in crate::loader) fn module(
    specifier: &ModuleSpecifier,
    source: &str,
) -> Result<String, JsErrorBox> {
    let text = source.trim_start_matches('\u{feff}');
    if let Err(problem) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let path = url_to_file_path(specifier).map_err(to_js_error)?;
        let why = problem.to_string();
        let why = why.split(" at line ").next().unwrap_or(&why);
        let why = match why {
            "key must be a string" => "a name in quotes is wanted, also after a comma",
            why => why,
        };
        return Err(JsErrorBox::generic(format!(
            "This is not JSON: {why} ({}:{}:{})",
            path.display(),
            problem.line(),
            problem.column().max(1)
        )));
    }
    let literal = serde_json::to_string(text).map_err(to_js_error)?;
    Ok(format!(
        "const json=JSON.parse({literal});export{{json as default,json as \"module.exports\"}};"
    ))
}
