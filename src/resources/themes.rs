//! Themes: colors by purpose. This is data only, checked and with resolved variables; the code
//! that draws decides how a terminal shows them.

use pi_base::regular_file;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::diagnostic::Diagnostic;
use crate::discovery::{NamedPath, ResourceSources};
use crate::paths::ResourceKind;
use crate::source_info::SourceInfo;

/// The tokens that every theme must define. Newer versions have more, which have fallbacks for
/// themes without them (`js/modules/pi-coding-agent/theme/colors.ts`).
pub const TOKENS: [&str; 51] = [
    "accent",
    "border",
    "borderAccent",
    "borderMuted",
    "success",
    "error",
    "warning",
    "muted",
    "dim",
    "text",
    "thinkingText",
    "selectedBg",
    "userMessageBg",
    "userMessageText",
    "customMessageBg",
    "customMessageText",
    "customMessageLabel",
    "toolPendingBg",
    "toolSuccessBg",
    "toolErrorBg",
    "toolTitle",
    "toolOutput",
    "mdHeading",
    "mdLink",
    "mdLinkUrl",
    "mdCode",
    "mdCodeBlock",
    "mdCodeBlockBorder",
    "mdQuote",
    "mdQuoteBorder",
    "mdHr",
    "mdListBullet",
    "toolDiffAdded",
    "toolDiffRemoved",
    "toolDiffContext",
    "syntaxComment",
    "syntaxKeyword",
    "syntaxFunction",
    "syntaxVariable",
    "syntaxString",
    "syntaxNumber",
    "syntaxType",
    "syntaxOperator",
    "syntaxPunctuation",
    "thinkingOff",
    "thinkingMinimal",
    "thinkingLow",
    "thinkingMedium",
    "thinkingHigh",
    "thinkingXhigh",
    "bashMode",
];

/// Built-in themes; a file of the same name takes precedence.
pub const BUILT_IN: [&str; 2] = ["dark", "light"];
/// The theme of newer versions with the colors of the terminal.
pub const SYSTEM: &str = "system";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// The default color of the terminal.
    Default,
    /// One of the 256 numbered colors of a terminal.
    Index(u8),
    Rgb(u8, u8, u8),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    pub name: String,
    /// Colors of all [`TOKENS`], in the order of the file.
    pub colors: IndexMap<String, Color>,
    /// Colors of exported pages: `pageBg`, `cardBg`, `infoBg`.
    pub export: IndexMap<String, Color>,
    pub file_path: PathBuf,
    pub source_info: SourceInfo,
}

impl Color {
    /// Returns the color in the form of a theme file.
    fn to_json(self) -> Value {
        match self {
            Self::Default => json!(""),
            Self::Index(index) => json!(index),
            Self::Rgb(red, green, blue) => json!(format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

impl Theme {
    /// Returns the theme file with resolved variables, and its path.
    pub fn describe(&self) -> Value {
        let colors: Map<String, Value> = self
            .colors
            .iter()
            .map(|(token, color)| (token.clone(), color.to_json()))
            .collect();
        json!({
            "name": self.name,
            "path": self.file_path,
            "sourceInfo": self.source_info,
            "colors": colors,
        })
    }
}

/// All errors of a theme, so that the author can fix them at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ThemeError(pub Vec<String>);

/// Returns the theme with this name, or else the one whose file has this name.
pub fn find_theme<'a>(themes: &'a [Theme], name: &str) -> Option<&'a Theme> {
    let by_file = |theme: &&Theme| theme.file_path.file_stem().is_some_and(|stem| stem == name);
    let by_name = themes.iter().find(|theme| theme.name == name);
    by_name.or_else(|| themes.iter().find(by_file))
}

/// Loads the themes. `named` are the values of `--theme` and the paths of extensions. Of two
/// themes with the same name the first is used.
pub fn load_themes(
    sources: &ResourceSources<'_>,
    named: &[NamedPath],
) -> (Vec<Theme>, Vec<Diagnostic>) {
    let found = sources.find_with_named(ResourceKind::Themes, named);
    let mut problems = found.diagnostics;
    let mut themes: Vec<Theme> = Vec::new();
    let mut owners: HashMap<String, PathBuf> = HashMap::new();
    for resource in found.paths {
        let path = resource.path;
        let mut not_loaded = |why: String| {
            let message = format!("The theme {} is not loaded: {why}", path.display());
            problems.push(Diagnostic::warning(&path, message));
        };
        let theme = match read(&path, resource.source_info) {
            Ok(theme) => theme,
            Err(error) => {
                not_loaded(error.to_string());
                continue;
            }
        };
        match owners.get(&theme.name) {
            Some(owner) => not_loaded(format!(
                "{} has the same name, \"{}\"",
                owner.display(),
                theme.name
            )),
            None => {
                owners.insert(theme.name.clone(), path);
                themes.push(theme);
            }
        }
    }
    (themes, problems)
}

fn read(path: &Path, source_info: SourceInfo) -> Result<Theme, ThemeError> {
    let only = |problem: String| ThemeError(vec![problem]);
    if path.extension().is_none_or(|extension| extension != "json") {
        return Err(only("it is not a JSON file (.json)".to_owned()));
    }
    let text = regular_file::read_lossy(path).map_err(|error| only(error.to_string()))?;
    let json = serde_json::from_str(&text).map_err(|error| only(error.to_string()))?;
    let Parts {
        name,
        colors,
        export,
    } = parse(&json)?;
    Ok(Theme {
        name,
        colors,
        export,
        file_path: path.to_owned(),
        source_info,
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    name: String,
    colors: IndexMap<String, Color>,
    export: IndexMap<String, Color>,
}

fn parse(json: &Value) -> Result<Parts, ThemeError> {
    let mut problems = Vec::new();
    let empty = Map::new();
    let mut object = |key: &str, needed: bool| match json.get(key) {
        Some(Value::Object(object)) => object,
        None if !needed => &empty,
        _ => {
            problems.push(format!("\"{key}\" has to be an object"));
            &empty
        }
    };
    let colors = object("colors", true);
    let vars = object("vars", false);
    let export = object("export", false);
    let name = json.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        problems.push("it needs a \"name\"".to_owned());
    }
    if json.get("colors").is_some_and(Value::is_object) {
        let absent = TOKENS.iter().filter(|token| !colors.contains_key(**token));
        let absent: Vec<_> = absent.copied().collect();
        if !absent.is_empty() {
            problems.push(format!("these colors are missing: {}", absent.join(", ")));
        }
    }
    let mut resolve_all = |of: &Map<String, Value>| -> IndexMap<String, Color> {
        let resolved = of.iter().filter_map(|(token, value)| {
            resolve(value, vars)
                .map_err(|problem| problems.push(format!("\"{token}\": {problem}")))
                .ok()
                .map(|color| (token.clone(), color))
        });
        resolved.collect()
    };
    let colors = resolve_all(colors);
    let export = resolve_all(export);
    match problems.is_empty() {
        true => Ok(Parts {
            name: name.to_owned(),
            colors,
            export,
        }),
        false => Err(ThemeError(problems)),
    }
}

fn resolve(value: &Value, vars: &Map<String, Value>) -> Result<Color, String> {
    let mut value = value;
    // A chain longer than the number of variables is a cycle.
    for _ in 0..=vars.len() {
        let name = match value {
            Value::Number(number) => {
                let index = number.as_u64().and_then(|index| u8::try_from(index).ok());
                let wrong = || format!("{number} is no color: indexes are 0 to 255");
                return index.map(Color::Index).ok_or_else(wrong);
            }
            Value::String(text) if text.is_empty() => return Ok(Color::Default),
            Value::String(text) => match text.strip_prefix('#') {
                Some(hex) => return rgb(hex).ok_or_else(|| format!("{text} is no #rrggbb")),
                None => text,
            },
            other => return Err(format!("{other} is no color")),
        };
        value = vars
            .get(name)
            .ok_or_else(|| format!("there is no variable \"{name}\""))?;
    }
    Err("its variables refer to each other in a circle".to_owned())
}

fn rgb(hex: &str) -> Option<Color> {
    let all_hex = hex.len() == 6 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = all_hex.then(|| u32::from_str_radix(hex, 16).ok())??;
    let [_, red, green, blue] = number.to_be_bytes();
    Some(Color::Rgb(red, green, blue))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths::Paths;
    use crate::settings::Settings;
    use serde_json::json;

    fn theme() -> Value {
        let colors = TOKENS.iter().map(|token| ((*token).to_owned(), json!("")));
        json!({"name": "t", "colors": colors.collect::<Map<_, _>>()})
    }

    #[test]
    fn colors_and_variables() {
        let mut json = theme();
        json["vars"] = json!({"a": "b", "b": "#0aFF10", "n": 7});
        json["colors"]["accent"] = json!("a");
        json["colors"]["border"] = json!("n");
        json["export"] = json!({"pageBg": "#000000"});
        let parts = parse(&json).unwrap();
        assert_eq!(parts.colors["accent"], Color::Rgb(10, 255, 16));
        assert_eq!(parts.colors["border"], Color::Index(7));
        assert_eq!(parts.colors["text"], Color::Default);
        assert_eq!(parts.export["pageBg"], Color::Rgb(0, 0, 0));
        assert_eq!(parts.colors.len(), TOKENS.len());
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let mut json = theme();
        json["vars"] = json!({"a": "b", "b": "a"});
        let colors = json["colors"].as_object_mut().unwrap();
        colors.remove("dim");
        colors.remove("bashMode");
        for (token, value) in [
            ("accent", json!("a")),
            ("border", json!("gone")),
            ("text", json!("#12345")),
            ("error", json!(256)),
            ("muted", json!([1])),
        ] {
            colors[token] = value;
        }
        json["name"] = json!("");
        let error = parse(&json).unwrap_err();
        let expected = [
            "it needs a \"name\"",
            "these colors are missing: dim, bashMode",
            "\"accent\": its variables refer to each other in a circle",
            "\"border\": there is no variable \"gone\"",
            "\"error\": 256 is no color: indexes are 0 to 255",
            "\"muted\": [1] is no color",
            "\"text\": #12345 is no #rrggbb",
        ];
        assert_eq!(error.0, expected);
        for wrong in [
            json!([]),
            json!({"name": "x"}),
            json!({"name": "x", "colors": 1, "vars": []}),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
        assert!(rgb("+12345").is_none() && rgb("ééé").is_none());
    }

    #[test]
    fn the_first_of_a_name_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let text = theme().to_string();
        for (path, text) in [
            ("p/.pi/themes/one.json", text.as_str()),
            ("agent/themes/two.json", &text),
            ("agent/themes/broken.json", "{"),
            ("x/named.json", &text.replace("\"t\"", "\"named\"")),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let paths = Paths {
            home: root.clone(),
            agent_dir: root.join("agent"),
            cwd: root.join("p"),
            distrust: None,
        };
        let sources = ResourceSources {
            paths: &paths,
            settings: &Settings::load(&paths),
            cli_extensions: &[],
            discover: true,
        };
        let (themes, problems) = load_themes(&sources, &[NamedPath::by_user("../x/named.json")]);
        let names: Vec<_> = themes.iter().map(|theme| theme.name.as_str()).collect();
        assert_eq!(names, ["t", "named"]);
        assert_eq!(themes[0].source_info.source, "auto");
        let places: Vec<_> = problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        let agent = root.join("agent/themes");
        assert_eq!(places, [agent.join("broken.json"), agent.join("two.json")]);
    }
}
