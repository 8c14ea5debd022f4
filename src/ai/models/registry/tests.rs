use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::message::now;

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn file(self, name: &str, value: Value) -> Self {
        fs::write(self.dir.path().join(name), value.to_string()).unwrap();
        self
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn load<const N: usize>(&self, env: [(&str, &str); N]) -> ModelRegistry {
        ModelRegistry::load_with(self.dir.path(), Env::fixed(env))
    }
}

async fn key(registry: &ModelRegistry, provider: &str, id: &str) -> Result<String, String> {
    let model = registry.find(provider, id).unwrap();
    let credentials = registry.credentials(&model).await;
    let credentials = credentials.map_err(|error| error.to_string())?;
    Ok(credentials.api_key.unwrap())
}

fn references(models: &[Arc<Model>]) -> Vec<String> {
    models.iter().map(|model| model.reference()).collect()
}

#[test]
fn the_registry_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<ModelRegistry>();
}

#[test]
fn only_requested_providers_are_parsed() {
    let registry = Fixture::new().load([("GROQ_API_KEY", "k")]);
    let parsed = || {
        let state = registry.state.read();
        let mut names: Vec<String> = state.models.keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(parsed(), Vec::<String>::new());
    assert!(registry.has_auth("groq"));
    assert!(registry.find("anthropic", "claude-opus-4-6").is_some());
    assert!(registry.find("nobody", "nothing").is_none());
    assert_eq!(parsed(), ["anthropic"]);
    assert!(registry.available().iter().all(|m| m.provider == "groq"));
    assert_eq!(parsed(), ["anthropic", "demo", "groq"]);
    assert_eq!(registry.all().len(), 2004);
    assert_eq!(registry.all().last().unwrap().reference(), "demo/demo");
}

#[tokio::test]
async fn the_first_of_several_sources_of_a_key_wins() {
    let config = json!({"providers": {"anthropic": {"baseUrl": "http://proxy", "apiKey": "from-models-json"}}});
    let fixture = Fixture::new().file("models.json", config);
    let get = async |registry: &ModelRegistry| key(registry, "anthropic", "claude-opus-4-6").await;

    assert_eq!(get(&fixture.load([])).await.unwrap(), "from-models-json");
    let one = [
        ("ANTHROPIC_API_KEY", "second"),
        ("STORED", "from-auth-json"),
    ];
    assert_eq!(get(&fixture.load(one)).await.unwrap(), "second");
    let both = [
        ("ANTHROPIC_API_KEY", "second"),
        ("ANTHROPIC_OAUTH_TOKEN", "first"),
        ("STORED", "from-auth-json"),
    ];
    let registry = fixture.load(both);
    assert_eq!(get(&registry).await.unwrap(), "first");

    let stored = AuthEntry::ApiKey {
        key: "STORED".into(),
    };
    registry.auth().set("anthropic", &stored).unwrap();
    assert_eq!(get(&registry).await.unwrap(), "from-auth-json");
    assert!(!registry.uses_oauth("anthropic"));

    let signed_in = AuthEntry::OAuth {
        access: "token".into(),
        refresh: "r".into(),
        expires: Some(now() + 60_000),
    };
    registry.auth().set("anthropic", &signed_in).unwrap();
    assert_eq!(get(&registry).await.unwrap(), "token");
    assert!(registry.uses_oauth("anthropic"));

    registry.set_runtime_key("anthropic", "from-flag");
    assert_eq!(get(&registry).await.unwrap(), "from-flag");
    registry.reload();
    assert_eq!(get(&registry).await.unwrap(), "from-flag");
    assert!(!registry.uses_oauth("anthropic"));
}

#[tokio::test]
async fn a_missing_key_error_names_the_places_for_one() {
    let fixture = Fixture::new();
    let registry = fixture.load([]);
    assert!(!registry.has_auth("github-copilot"));
    let error = key(&registry, "github-copilot", "gpt-4o").await;
    assert_eq!(
        error.unwrap_err(),
        format!(
            "No API key found for github-copilot.\n\n\
             To give it a key, set COPILOT_GITHUB_TOKEN or GH_TOKEN or GITHUB_TOKEN, \
             or pass --api-key, or add the provider to {}.",
            fixture.path("auth.json")
        )
    );
}

#[tokio::test]
async fn an_expired_sign_in_is_an_error_until_it_is_renewed() {
    let entry =
        |expires: i64| json!({"openai": {"type": "oauth", "access": "token", "expires": expires}});
    let fixture = Fixture::new().file("auth.json", entry(now() - 1));
    let registry = fixture.load([("OPENAI_API_KEY", "not-used")]);
    assert!(registry.has_auth("openai"));
    let error = key(&registry, "openai", "gpt-5.4").await.unwrap_err();
    let path = fixture.path("auth.json");
    assert_eq!(
        error,
        format!(
            "Authentication failed for \"openai\". Its sign-in has expired and could not be renewed (no \
             extension that is loaded knows how). Sign in again with /login openai, or remove it from \
             {path} and use an API key.\n\nOnce it is removed, the key of the environment is used."
        )
    );
    let _fixture = fixture.file("auth.json", entry(now() + 60_000));
    assert_eq!(key(&registry, "openai", "gpt-5.4").await.unwrap(), "token");
}

#[tokio::test]
async fn headers_of_all_configurations_are_merged() {
    let config = json!({"providers": {
        "github-copilot": {
            "baseUrl": "http://proxy", "authHeader": true,
            "headers": {"User-Agent": "mine", "X-Team": "TEAM", "X-Both": "provider"},
            "modelOverrides": {"gpt-4o": {"headers": {"X-Both": "!echo model"}}},
        },
        "own": {"baseUrl": "http://h", "api": "openai-completions", "apiKey": "!echo $((6*7))",
                "models": [{"id": "m", "headers": {"A": "b"}}]},
    }});
    let fixture = Fixture::new().file("models.json", config);
    let registry = fixture.load([("GH_TOKEN", "ght"), ("TEAM", "blue")]);
    let model = registry.find("github-copilot", "gpt-4o").unwrap();
    assert_eq!(model.base_url, "http://proxy");
    let expected = Credentials {
        api_key: Some("ght".into()),
        headers: [
            ("User-Agent", "mine"),
            ("Editor-Version", "vscode/1.107.0"),
            ("Editor-Plugin-Version", "copilot-chat/0.35.0"),
            ("Copilot-Integration-Id", "vscode-chat"),
            ("X-Team", "blue"),
            ("X-Both", "model"),
            ("Authorization", "Bearer ght"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
    };
    assert_eq!(registry.credentials(&model).await.unwrap(), expected);

    let own = registry.find("own", "m").unwrap();
    assert_eq!(own.headers, None);
    let credentials = registry.credentials(&own).await.unwrap();
    assert_eq!(credentials.api_key.as_deref(), Some("42"));
    assert_eq!(credentials.headers["A"], "b");
    let available = references(&registry.available());
    assert!(available.contains(&"own/m".to_owned()));
    assert!(!format!("{credentials:?} {registry:?}").contains("42"));
}

#[tokio::test]
async fn a_command_that_fails_is_named() {
    let config = json!({"providers": {"own": {
        "baseUrl": "http://h", "api": "openai-completions", "apiKey": "!exit 3", "models": [{"id": "m"}]}}});
    let fixture = Fixture::new().file("models.json", config);
    assert_eq!(
        key(&fixture.load([]), "own", "m").await.unwrap_err(),
        "Failed to resolve API key for provider \"own\" from shell command: exit 3 (exit status: 3)"
    );
}

#[test]
fn a_broken_provider_returns_after_a_correction() {
    let broken = json!({"providers": {"openai": {"baseUrl": 5}, "own": {}}});
    let fixture = Fixture::new().file("models.json", broken);
    let registry = fixture.load([]);
    let url = || registry.find("openai", "gpt-5.4").unwrap().base_url.clone();
    let error = registry.error().unwrap();
    assert!(error.contains("Provider own: must specify"), "{error}");
    assert_eq!(url(), "https://api.openai.com/v1");
    let mended = json!({"providers": {"openai": {"baseUrl": "http://proxy"}}});
    let _fixture = fixture.file("models.json", mended);
    registry.reload();
    assert_eq!((registry.error(), url()), (None, "http://proxy".into()));
}

#[tokio::test]
async fn the_demo_is_suggested_only_without_other_models() {
    let fixture = Fixture::new();
    let registry = fixture.load([]);
    assert!(registry.has_auth("demo"));
    let demo = registry.find("demo", "demo").unwrap();
    assert_eq!(
        registry.credentials(&demo).await.unwrap(),
        Credentials::default()
    );
    assert_eq!(references(&registry.available()), Vec::<String>::new());
    let advice = format!(
        "Set an API key environment variable (such as ANTHROPIC_API_KEY or OPENAI_API_KEY) \
         or add a key to {}, then select a model with /model or --model.",
        fixture.path("auth.json")
    );
    let demo = "\n\nTo try pi without any key, use its built-in demo: --provider demo --model demo";
    assert_eq!(
        registry.no_model_text(),
        format!("No models available.\n\n{advice}{demo}")
    );
    assert_eq!(
        fixture.load([("XAI_API_KEY", "k")]).no_model_text(),
        format!("No model selected.\n\n{advice}")
    );
}
