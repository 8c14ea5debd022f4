//! `--list-models`: prints a table of the models that can be used.

use std::sync::Arc;

use unicode_width::UnicodeWidthStr;

use super::args::Arguments;
use super::{CliError, config, output, paths, proxy, runtime, warn};
use pi_ai::demo;
use pi_ai::model::Model;
use pi_app::{Mode, known_models};

pub fn run(arguments: &Arguments, pattern: &str) -> Result<(), CliError> {
    let mut warnings = Vec::new();
    let paths = paths()?;
    proxy::apply_setting(&paths);
    let config = config::build(arguments, paths, Mode::Print, &mut warnings)?;
    let (registry, problems) = runtime()?.block_on(known_models(&config));
    for warning in warnings.iter().chain(&problems) {
        warn(warning);
    }
    if let Some(error) = registry.error() {
        warn(&format!("errors loading models.json:\n{error}"));
    }
    if let Some(error) = registry.auth().error() {
        warn(&error.to_string());
    }
    let mut models = registry.available();
    if !models.is_empty() {
        // The demo model is never selected by default, but it can be requested.
        models.extend(registry.models_of(demo::PROVIDER).iter().cloned());
    }
    output(&table(models, pattern))
}

fn table(mut models: Vec<Arc<Model>>, pattern: &str) -> String {
    if models.is_empty() {
        return "No models available. Set API keys in environment variables.\n\
                To try pi without any key: pi --provider demo\n"
            .into();
    }
    models.retain(|model| matches(pattern, &format!("{} {}", model.provider, model.id)));
    if models.is_empty() {
        return format!("No models matching \"{pattern}\"\n");
    }
    models.sort_by_cached_key(|model| (model.provider.to_lowercase(), model.id.to_lowercase()));
    let header = [
        "provider", "model", "context", "max-out", "thinking", "images",
    ];
    let mut rows = vec![header.map(str::to_string)];
    rows.extend(models.iter().map(|model| row(model)));
    let widths: [usize; 6] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.max().unwrap_or_default()
    });
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn row(model: &Model) -> [String; 6] {
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_string();
    [
        model.provider.clone(),
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes(model.reasoning),
        yes(model.takes_images()),
    ]
}

fn line(row: &[String; 6], widths: &[usize; 6]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        line += cell;
        line += &" ".repeat(width - cell.width() + 2);
    }
    format!("{}\n", line.trim_end())
}

/// Abbreviates a number of tokens: `8192` is `8.2K`.
fn tokens(count: u64) -> String {
    let (unit, sign) = match count {
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "K"),
        _ => return count.to_string(),
    };
    match count % unit {
        0 => format!("{}{sign}", count / unit),
        _ => format!("{:.1}{sign}", count as f64 / unit as f64),
    }
}

/// Whether the text contains every word of the pattern, as letters in this order that need not be
/// adjacent.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    let pattern = pattern.to_lowercase();
    let mut words = pattern.split_whitespace();
    words.all(|word| {
        contains_in_order(word, &text)
            || swapped(word).is_some_and(|word| contains_in_order(&word, &text))
    })
}

fn contains_in_order(word: &str, text: &str) -> bool {
    let mut signs = text.chars();
    word.chars().all(|sign| signs.any(|other| other == sign))
}

/// Exchanges the letters and the digits of a word, so that `opus4` finds `4-opus` and the reverse.
fn swapped(word: &str) -> Option<String> {
    let first_is_digit = word.chars().next()?.is_ascii_digit();
    let kind = |sign: char| sign.is_ascii_digit() == first_is_digit;
    let (start, end) = word.split_at(word.find(|sign| !kind(sign))?);
    let plain = word.chars().all(|sign| sign.is_ascii_alphanumeric());
    let two_parts = !end.contains(kind);
    (plain && two_parts).then(|| format!("{end}{start}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_ai::model::{Modality, ModelCost};

    fn model(provider: &str, id: &str, context_window: u64) -> Arc<Model> {
        Arc::new(Model {
            id: id.into(),
            name: id.into(),
            api: "openai-completions".into(),
            provider: provider.into(),
            base_url: String::new(),
            reasoning: provider == "a",
            input: vec![Modality::Text],
            cost: ModelCost::default(),
            context_window,
            max_tokens: 8192,
            headers: None,
            thinking_level_map: None,
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            compat: None,
        })
    }

    #[test]
    fn the_table_is_sorted() {
        let models = vec![
            model("b", "one", 999),
            model("a", "wide-name", 1_048_576),
            model("a", "Two", 200_000),
        ];
        assert_eq!(
            table(models, ""),
            "provider  model      context  max-out  thinking  images\n\
             a         Two        200K     8.2K     yes       no\n\
             a         wide-name  1.0M     8.2K     yes       no\n\
             b         one        999      8.2K     no        no\n"
        );
    }

    #[test]
    fn patterns_match_letters_in_order() {
        let text = "anthropic claude-Opus-4-6";
        for pattern in [
            "",
            "opus",
            "ant op",
            "ao46",
            "OPUS4",
            "4opus",
            "claude opus 4",
        ] {
            assert!(matches(pattern, text), "{pattern}");
        }
        for pattern in ["sonnet", "opus5", "opus sonnet", "4o6p", "64opus"] {
            assert!(!matches(pattern, text), "{pattern}");
        }
    }

    #[test]
    fn missing_models_are_reported() {
        assert_eq!(
            table(vec![model("a", "one", 1)], "zzz"),
            "No models matching \"zzz\"\n"
        );
        let none = table(Vec::new(), "zzz");
        assert!(none.starts_with("No models available. "), "{none}");
    }
}
