use serde_json::json;

use super::*;
use crate::auth::secret_value::Env;

fn registry<const N: usize>(env: [(&str, &str); N]) -> ModelRegistry {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"providers": {"own": {
        "baseUrl": "http://h", "api": "openai-completions", "apiKey": "k",
        "models": [
            {"id": "Alpha-20250101"}, {"id": "Alpha-20250601"}, {"id": "beta:free", "reasoning": true},
            {"id": "gpt-5.4-own", "reasoning": true}, {"id": "plain"},
        ],
    }}});
    std::fs::write(dir.path().join("models.json"), config.to_string()).unwrap();
    ModelRegistry::load_with(dir.path(), Env::fixed(env))
}

fn empty() -> ModelRegistry {
    let dir = tempfile::tempdir().unwrap();
    ModelRegistry::load_with(dir.path(), Env::fixed([]))
}

#[track_caller]
fn cli(provider: Option<&str>, model: &str) -> (String, Option<ThinkingLevel>, Option<String>) {
    let found = cli_model(&registry([]), provider, model).unwrap();
    (found.model.reference(), found.thinking, found.warning)
}

fn plain(reference: &str) -> (String, Option<ThinkingLevel>, Option<String>) {
    (reference.to_owned(), None, None)
}

#[test]
fn flags_find_models_by_reference_id_and_part_of_the_name() {
    for (provider, model, reference) in [
        (
            None,
            "Anthropic/Claude-Opus-4-6",
            "anthropic/claude-opus-4-6",
        ),
        (None, "gpt-5.4", "openai/gpt-5.4"),
        (None, "anthropic/opus", "anthropic/claude-opus-5-5"),
        (
            Some("ANTHROPIC"),
            "anthropic/opus",
            "anthropic/claude-opus-5-5",
        ),
        (Some("own"), "alpha", "own/Alpha-20250601"),
        (None, "own/beta:free", "own/beta:free"),
        // A provider takes precedence over an id with a slash, and an id over no match.
        (None, "zai/glm-5", "zai/glm-5"),
        (
            None,
            "openai/gpt-oss-20b:free",
            "openrouter/openai/gpt-oss-20b:free",
        ),
        (
            None,
            "moonshotai/Kimi-K2.5",
            "openrouter/moonshotai/kimi-k2.5",
        ),
        (Some("demo"), "demo", "demo/demo"),
        (None, "demo", "demo/demo"),
    ] {
        assert_eq!(cli(provider, model), plain(reference), "{model}");
    }
}

#[test]
fn flags_may_carry_a_thinking_level() {
    let high = Some(ThinkingLevel::High);
    assert_eq!(
        cli(None, "anthropic/claude-opus-4-6:high"),
        ("anthropic/claude-opus-4-6".into(), high, None)
    );
    assert_eq!(
        cli(None, "own/beta:free:high"),
        ("own/beta:free".into(), high, None)
    );
}

#[test]
fn an_unknown_model_of_a_known_provider_is_tried_with_a_warning() {
    let warning = |id: &str| {
        Some(format!(
            "Model \"{id}\" not found for provider \"anthropic\". Using custom model id."
        ))
    };
    // A wrong level is part of the id: it must not select another model.
    for id in ["claude-nine", "claude-opus-4-6:hgih"] {
        let found = cli_model(&registry([]), Some("anthropic"), id).unwrap();
        let default = registry([]).find("anthropic", "claude-opus-4-6").unwrap();
        let expected = Model {
            id: id.into(),
            name: id.into(),
            ..Model::clone(&default)
        };
        assert_eq!((&*found.model, found.warning), (&expected, warning(id)));
    }
}

#[test]
fn a_provider_alone_means_its_default_model() {
    let registry = registry([]);
    let id = |name: &str| provider_model(&registry, name).map(|found| found.model.id.clone());
    assert_eq!(id("demo").unwrap(), "demo");
    let usual = builtin::provider("openai").unwrap().default_model;
    assert_eq!(id("OpenAI").unwrap(), usual);
    assert_eq!(
        id("nobody").unwrap_err().to_string(),
        "Unknown provider \"nobody\". Use --list-models to see available providers/models."
    );
}

#[test]
fn an_unknown_model_in_flags_is_an_error() {
    for (provider, model, error) in [
        (
            Some("nobody"),
            "x",
            "Unknown provider \"nobody\". Use --list-models to see available providers/models.",
        ),
        (
            None,
            "no-such-thing",
            "Model \"no-such-thing\" not found. Use --list-models to see available models.",
        ),
        (
            None,
            "dem",
            "Model \"dem\" not found. Use --list-models to see available models.",
        ),
        (
            Some("demo"),
            "x",
            "Model \"demo/x\" not found. Use --list-models to see available models.",
        ),
    ] {
        let found = cli_model(&registry([]), provider, model);
        assert_eq!(found.unwrap_err().to_string(), error);
    }
}

fn scoped(patterns: &[&str]) -> (Vec<(String, Option<ThinkingLevel>)>, Vec<String>) {
    let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
    let scope = scope(&registry([]), &patterns);
    let models = scope.models.iter();
    (
        models.map(|m| (m.model.reference(), m.thinking)).collect(),
        scope.warnings,
    )
}

#[test]
fn a_scope_takes_globs_and_names_of_models_with_a_key_once_each() {
    let low = Some(ThinkingLevel::Low);
    assert_eq!(
        scoped(&["ALPHA*:low", "own/*[n]", "beta:free", "own/plain", "demo"]),
        (
            vec![
                ("own/Alpha-20250101".into(), low),
                ("own/Alpha-20250601".into(), low),
                ("own/gpt-5.4-own".into(), None),
                ("own/plain".into(), None),
                ("own/beta:free".into(), None),
                ("demo/demo".into(), None),
            ],
            vec![],
        )
    );
}

#[test]
fn unusable_scope_patterns_give_warnings() {
    assert_eq!(
        scoped(&["claude-opus-4-6", "demo*", "[", "plain:hgih", "*"]).1,
        [
            "No models match pattern \"claude-opus-4-6\"",
            "No models match pattern \"demo*\"",
            "No models match pattern \"[\"",
            "Invalid thinking level \"hgih\" in pattern \"plain:hgih\". Using default instead.",
        ]
    );
    assert_eq!(scoped(&["*"]).0.len(), 5);
}

fn reference(start: &StartModel) -> Option<String> {
    start.model.as_ref().map(|model| model.reference())
}

#[test]
fn the_start_model_comes_from_the_first_source() {
    let registry = registry([("XAI_API_KEY", "k"), ("GROQ_API_KEY", "k")]);
    let cli = cli_model(&registry, None, "anthropic/claude-opus-4-6").unwrap();
    let scope = scope(&registry, &["plain".into(), "beta:free:low".into()]).models;
    let session = SessionChoice {
        model: Some(("own".into(), "Alpha-20250101".into())),
        thinking: None,
    };
    let default_model = Some(("openai", "gpt-5.4"));

    let mut options = StartOptions {
        cli: Some(&cli),
        scope: &scope,
        session: Some(&session),
        default_model,
        ..StartOptions::default()
    };
    let check = |options: &StartOptions, expected: &str| {
        let start = start_model(&registry, options);
        assert_eq!(
            (reference(&start).as_deref(), start.fallback),
            (Some(expected), None)
        );
    };
    check(&options, "anthropic/claude-opus-4-6");
    options.cli = None;
    check(&options, "own/Alpha-20250101");
    options.session = None;
    check(&options, "own/plain");
    options.default_model = Some(("own", "beta:free"));
    check(&options, "own/beta:free");
    options.scope = &[];
    options.default_model = default_model;
    check(&options, "openai/gpt-5.4"); // without a key: the user chose it
    options.default_model = Some(("openai", "gone"));
    check(&options, "xai/grok-4-fast-non-reasoning");
}

#[test]
fn without_a_default_the_first_available_model_is_taken() {
    let start = start_model(&registry([]), &StartOptions::default());
    assert_eq!(reference(&start).as_deref(), Some("own/Alpha-20250101"));
}

#[test]
fn a_missing_session_model_gives_a_message() {
    for (provider, id) in [("own", "gone"), ("anthropic", "claude-opus-4-6")] {
        let session = SessionChoice {
            model: Some((provider.into(), id.into())),
            thinking: None,
        };
        let options = StartOptions {
            session: Some(&session),
            ..StartOptions::default()
        };
        let start = start_model(&registry([]), &options);
        let text = format!("Could not restore model {provider}/{id}. Using own/Alpha-20250101");
        assert_eq!(start.fallback, Some(text));
    }
}

#[test]
fn the_demo_is_chosen_only_by_name() {
    let registry = empty();
    let nothing = start_model(&registry, &StartOptions::default());
    assert_eq!(
        (nothing.model, nothing.thinking),
        (None, ThinkingLevel::Off)
    );
    assert_eq!(nothing.fallback, None);

    let session = SessionChoice {
        model: Some(("demo".into(), "demo".into())),
        thinking: None,
    };
    for options in [
        StartOptions {
            session: Some(&session),
            ..StartOptions::default()
        },
        StartOptions {
            default_model: Some(("demo", "demo")),
            ..StartOptions::default()
        },
    ] {
        let start = start_model(&registry, &options);
        assert_eq!(
            (reference(&start).as_deref(), start.fallback),
            (Some("demo/demo"), None)
        );
    }
}

#[test]
fn thinking_level_comes_from_the_first_source_clamped() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
    let registry = registry([]);
    let cli = cli_model(&registry, None, "own/beta:free:low").unwrap();
    let scope = scope(&registry, &["beta:free:minimal".into()]).models;
    let session = SessionChoice {
        model: Some(("own".into(), "beta:free".into())),
        thinking: Some(High),
    };
    let silent = SessionChoice {
        thinking: None,
        ..session.clone()
    };
    let level = |options: StartOptions| start_model(&registry, &options).thinking;
    let base = StartOptions {
        scope: &scope,
        default_thinking: Some(Off),
        ..StartOptions::default()
    };

    let with_cli = StartOptions {
        cli: Some(&cli),
        session: Some(&session),
        ..base.clone()
    };
    assert_eq!(
        level(StartOptions {
            cli_thinking: Some(Minimal),
            ..with_cli.clone()
        }),
        Minimal
    );
    assert_eq!(level(with_cli), Low);
    assert_eq!(level(base.clone()), Minimal);
    assert_eq!(
        level(StartOptions {
            session: Some(&session),
            ..base.clone()
        }),
        High
    );
    assert_eq!(
        level(StartOptions {
            session: Some(&silent),
            ..base
        }),
        Off
    );
    let bare = StartOptions {
        session: Some(&silent),
        ..StartOptions::default()
    };
    assert_eq!(level(bare), Medium);

    let thinking_level = |id| {
        let cli = cli_model(&registry, None, id).unwrap();
        let options = StartOptions {
            cli: Some(&cli),
            ..StartOptions::default()
        };
        let options = StartOptions {
            cli_thinking: Some(Xhigh),
            ..options
        };
        start_model(&registry, &options).thinking
    };
    assert_eq!(
        [
            thinking_level("own/plain"),
            thinking_level("own/beta:free"),
            thinking_level("own/gpt-5.4-own")
        ],
        [Off, High, Xhigh]
    );
}
