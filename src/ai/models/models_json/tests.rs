use std::fs;

use serde_json::json;

use super::*;
use crate::model::Model;

fn load_text(text: &str) -> Result<ModelsJson, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("models.json");
    fs::write(&path, text).unwrap();
    let (config, Some(error)) = load(&path) else {
        return Ok(load(&path).0);
    };
    let right: Vec<&String> = config.providers.keys().collect();
    let text = format!(
        "{error}{}",
        right
            .iter()
            .map(|name| format!("\n+{name}"))
            .collect::<String>()
    );
    let file = format!("\n\nFile: {}", path.display());
    assert!(text.contains(&file), "{text}");
    Err(text.replace(&file, ""))
}

fn load_json(value: Value) -> Result<ModelsJson, String> {
    load_text(&value.to_string())
}

/// Returns the models of `provider` with this configuration.
fn models(provider: &str, config: Value) -> Vec<Model> {
    let file = load_json(json!({"providers": {provider: config}})).unwrap();
    let built_in = builtin::provider(provider).map(builtin::Provider::load);
    file.providers[provider].apply(provider, built_in)
}

fn model(provider: &str, id: &str, config: Value) -> Value {
    let models = models(provider, config);
    let model = models.into_iter().find(|model| model.id == id);
    serde_json::to_value(model.unwrap()).unwrap()
}

#[test]
fn a_missing_file_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let (config, error) = load(&dir.path().join("models.json"));
    assert!(config.providers.is_empty() && error.is_none());
}

#[test]
fn comments_trailing_commas_and_a_byte_order_mark_are_fine() {
    let config = load_text(
        "\u{feff}{ // mine\n \"providers\": { /* none */ \"openai\": {\"baseUrl\": \"http://x\",}, },\n}",
    );
    let names: Vec<String> = config.unwrap().providers.into_keys().collect();
    assert_eq!(names, ["openai"]);
}

#[test]
fn a_syntax_error_names_its_place_and_shows_no_value() {
    let error = load_text("{\n\"providers\": {\"x\": {\"apiKey\" \"sk-secret\"}}}").unwrap_err();
    assert_eq!(
        error,
        "Failed to parse models.json: Expected colon after the string or word in object property (line 2, column 30)"
    );
    for text in ["", " \n", "// nothing"] {
        let error = load_text(text).unwrap_err();
        assert_eq!(
            error,
            "Failed to parse models.json: the file is empty; at least {\"providers\": {}} is needed"
        );
    }
}

#[test]
fn errors_of_shape_name_provider_model_and_field_but_no_value() {
    let error = load_json(json!({"providers": {
        "a/b": {"baseUrl": "", "headers": "sk-secret", "models": [
            {"id": "m", "cost": {"input": "sk-secret", "output": 1, "cacheRead": 0}, "contextWindow": 0},
            {"name": "x"},
        ]},
        "openai": {"modelOverrides": {"gpt-5.4": {"input": ["audio"]}}, "apiKey": null},
    }}))
    .unwrap_err();
    let mut lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.remove(0), "Invalid models.json schema:");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "  - provider \"a/b\", field \"baseUrl\": must not be empty",
            "  - provider \"a/b\", field \"headers\": the value is not of type \"object\"",
            "  - provider \"a/b\", model \"m\", field \"contextWindow\": must be greater than 0",
            "  - provider \"a/b\", model \"m\", field \"cost\": \"cacheWrite\" is missing",
            "  - provider \"a/b\", model \"m\", field \"cost.input\": the value is not of type \"number\"",
            "  - provider \"a/b\", model number 2: \"id\" is missing",
            "  - provider \"openai\", field \"apiKey\": the value is not of type \"string\"",
            "  - provider \"openai\", override of model \"gpt-5.4\", field \"input.0\": the value is not one of \"text\" or \"image\"",
        ]
    );
    assert_eq!(
        load_json(json!({})).unwrap_err(),
        "Invalid models.json schema:\n  - the file: \"providers\" is missing"
    );
}

#[test]
fn rules_between_fields() {
    let model = json!([{"id": "m"}]);
    for (provider, config, message) in [
        (
            "anthropic",
            json!({"note": "y"}),
            "Provider anthropic: must specify \"baseUrl\", \"compat\", \"modelOverrides\", or \"models\".",
        ),
        (
            "mine",
            json!({"models": model, "api": "a", "apiKey": "k"}),
            "Provider mine: \"baseUrl\" is required when defining custom models.",
        ),
        (
            "mine",
            json!({"models": model, "apiKey": "k", "baseUrl": "u"}),
            "Provider mine, model m: no \"api\" specified. Set at provider or model level.",
        ),
    ] {
        let error = load_json(json!({"providers": {provider: config}})).unwrap_err();
        assert_eq!(error, format!("Failed to load models.json: {message}"));
    }
}

/// Regression: one wrong entry dropped the whole file.
#[test]
fn an_error_in_one_provider_drops_only_that_one() {
    let good = json!({"baseUrl": "u", "api": "a", "models": [{"id": "m"}]});
    let error = load_json(json!({"providers": {
        "one": good, "two": {"baseUrl": 5}, "three": {"models": [{"id": "m"}]}, "openai": {"name": "Mine"},
    }}))
    .unwrap_err();
    assert_eq!(
        error,
        "Invalid models.json schema:\n  - provider \"two\", field \"baseUrl\": the value is not of type \"string\"\n  \
         - Provider three: \"baseUrl\" is required when defining custom models.\n+one\n+openai"
    );
}

#[test]
fn a_custom_model_has_defaults_and_ignores_unknown_members() {
    let config = json!({
        "baseUrl": "http://localhost:11434/v1", "api": "openai-completions", "apiKey": "ollama",
        "compat": {"supportsStore": false, "openRouterRouting": {"only": ["a"], "zdr": true}},
        "note": "mine",
        "models": [
            {"id": "llama3.1:8b", "headers": {"X-Key": "secret"}},
            {"id": "big", "name": "Big", "api": "anthropic-messages", "baseUrl": "http://b", "reasoning": true,
             "input": ["text", "image"], "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0.5},
             "contextWindow": 1e6, "maxTokens": 5000.0,
             "compat": {"supportsStore": true, "openRouterRouting": {"only": ["b"]}}},
        ],
    });
    let models = serde_json::to_value(models("ollama", config)).unwrap();
    assert_eq!(
        models,
        json!([
            {
                "id": "llama3.1:8b", "name": "llama3.1:8b", "api": "openai-completions", "provider": "ollama",
                "baseUrl": "http://localhost:11434/v1", "reasoning": false, "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 128000, "maxTokens": 16384,
                "compat": {"supportsStore": false, "openRouterRouting": {"only": ["a"], "zdr": true}},
            },
            {
                "id": "big", "name": "Big", "api": "anthropic-messages", "provider": "ollama",
                "baseUrl": "http://b", "reasoning": true, "input": ["text", "image"],
                "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0.5},
                "contextWindow": 1000000, "maxTokens": 5000,
                "compat": {"supportsStore": true, "openRouterRouting": {"only": ["b"], "zdr": true}},
            },
        ])
    );
}

#[test]
fn a_built_in_provider_gives_defaults_to_custom_models() {
    let config = json!({
        "models": [{"id": "new"}, {"id": "gpt-4", "name": "Mine"}],
        "modelOverrides": {"gpt-5.4": {"name": "Five", "cost": {"output": 9}, "maxTokens": 7, "compat": {"a": 1}}},
    });
    let before = builtin::provider("openai").unwrap().load().models;
    let old = before.iter().find(|m| m.id == "gpt-5.4").unwrap();
    let after = models("openai", config.clone());
    assert_eq!(after.len(), before.len() + 1);
    assert_eq!(after.last().unwrap().id, "new");
    assert_eq!(after.last().unwrap().base_url, "https://api.openai.com/v1");
    let position = |models: &[Model]| models.iter().position(|m| m.id == "gpt-4");
    assert_eq!(position(&after), position(&before));
    assert_eq!(model("openai", "gpt-4", config.clone())["name"], "Mine");

    let mut expected = old.clone();
    expected.name = "Five".into();
    expected.cost.output = 9.0;
    expected.max_tokens = 7;
    if let Some(compat) = &mut expected.compat {
        compat["a"] = json!(1);
    }
    assert!(after.contains(&expected));
}

#[test]
fn a_url_alone_moves_every_model_of_a_provider() {
    let models = models(
        "zai",
        json!({"baseUrl": "http://proxy", "compat": {"thinkingFormat": "qwen"}}),
    );
    assert!(models.len() > 10);
    for model in models {
        assert_eq!(model.base_url, "http://proxy");
        let compat = model.compat.unwrap();
        assert_eq!(compat["thinkingFormat"], "qwen");
        assert_eq!(compat["supportsDeveloperRole"], false);
    }
}

#[test]
fn debug_shows_no_key() {
    let config = load_json(json!({"providers": {"x": {
        "baseUrl": "http://u:sk-secret@h", "api": "a", "apiKey": "sk-secret", "headers": {"k": "sk-secret"},
        "models": [{"id": "m", "headers": {"k": "sk-secret"}}],
    }}}))
    .unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("\"m\""));
    assert!(!shown.contains("sk-secret"), "{shown}");
}
