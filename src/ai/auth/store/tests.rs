use std::os::unix::fs::symlink;

use super::*;

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn with(text: &str) -> Self {
        let fixture = Self::new();
        fs::create_dir(fixture.path().parent().unwrap()).unwrap();
        fs::write(fixture.path(), text).unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("agent/auth.json")
    }

    fn store(&self) -> AuthStore {
        AuthStore::open(self.path())
    }

    fn content(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }
}

fn key(text: &str) -> AuthEntry {
    AuthEntry::ApiKey {
        key: text.to_owned(),
    }
}

#[test]
fn the_first_write_makes_a_private_file_in_a_private_folder() {
    let fixture = Fixture::new();
    let store = fixture.store();
    assert_eq!((store.entry("openai"), store.error()), (None, None));
    assert!(!fixture.path().exists(), "reading creates nothing");

    store.set("openai", &key("sk-1")).unwrap();
    assert_eq!(store.entry("openai"), Some(key("sk-1")));
    assert_eq!(
        fixture.content(),
        json!({"openai": {"type": "api_key", "key": "sk-1"}})
    );
    assert_eq!(Fixture::mode(&fixture.path()), 0o600);
    assert_eq!(Fixture::mode(fixture.path().parent().unwrap()), 0o700);
    assert!(!FileLock::is_held(&fixture.path()));
}

#[test]
fn a_write_keeps_unknown_fields_and_foreign_changes() {
    let fixture = Fixture::with(
        r#"{"github-copilot": {"type": "oauth", "access": "a", "refresh": "r", "expires": 5, "enterpriseUrl": "x.ghe.com"},
            "future": {"type": "passkey", "n": 1}}"#,
    );
    fs::set_permissions(fixture.path(), Permissions::from_mode(0o644)).unwrap();
    let store = fixture.store();
    fixture.store().set("groq", &key("gsk")).unwrap();
    let refreshed = AuthEntry::OAuth {
        access: "a2".into(),
        refresh: "r2".into(),
        expires: Some(7),
    };
    store.set("github-copilot", &refreshed).unwrap();
    assert_eq!(
        fixture.content(),
        json!({
            "github-copilot": {"type": "oauth", "access": "a2", "refresh": "r2", "expires": 7, "enterpriseUrl": "x.ghe.com"},
            "future": {"type": "passkey", "n": 1},
            "groq": {"type": "api_key", "key": "gsk"},
        })
    );
    assert_eq!(Fixture::mode(&fixture.path()), 0o600);
    assert_eq!(store.providers(), ["github-copilot", "groq"]);

    // An entry of another type does not match.
    store.set("github-copilot", &key("ghp")).unwrap();
    store.remove("groq").unwrap();
    assert_eq!(
        fixture.content(),
        json!({
            "github-copilot": {"type": "api_key", "key": "ghp"},
            "future": {"type": "passkey", "n": 1},
        })
    );
}

#[test]
fn a_broken_file_is_never_quoted_or_overwritten() {
    let text = "{\n  \"openai\": {\"type\": \"api_key\", \"key\": \"sk-secret\" \n";
    let fixture = Fixture::with(text);
    let store = fixture.store();
    let expected = format!(
        "{} is not valid JSON (line 3, column 0); correct it, or move it away and add the keys again",
        fixture.path().display()
    );
    assert_eq!(store.error(), Some(expected.clone()));
    let error = store.set("openai", &key("sk-2")).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(fs::read_to_string(fixture.path()).unwrap(), text);

    fs::write(fixture.path(), "[\"sk-secret\"]").unwrap();
    store.reload();
    assert_eq!(
        store.error(),
        Some(format!(
            "{} must hold one JSON object, with an entry for each provider",
            fixture.path().display()
        ))
    );
}

#[test]
fn a_lock_held_by_another_process_is_respected() {
    let fixture = Fixture::with("{}");
    let store = fixture.store();
    let lock = FileLock::acquire(&fixture.path()).unwrap();
    let error = store.set("openai", &key("sk-1")).unwrap_err();
    assert!(matches!(error, AuthFileError::Write { .. }));
    assert_eq!(fixture.content(), json!({}));
    drop(lock);
    store.set("openai", &key("sk-1")).unwrap();
}

#[test]
fn unsaved_entries_apply_and_are_stored_later() {
    let fixture = Fixture::with(r#"{"groq": {"type": "api_key", "key": "old"}}"#);
    let store = fixture.store();
    let lock = FileLock::acquire(&fixture.path()).unwrap();
    store.set("openai", &key("sk-1")).unwrap_err();
    store.remove("groq").unwrap_err();
    for _ in 0..2 {
        assert_eq!(store.entry("openai"), Some(key("sk-1")));
        assert_eq!(store.entry("groq"), None);
        store.reload();
    }
    drop(lock);
    fixture.store().set("other", &key("k")).unwrap();
    store.set("xai", &key("k")).unwrap();
    let stored = AuthStore::open(fixture.path()).providers();
    assert_eq!(stored, ["other", "openai", "xai"]);
    assert_eq!(store.providers(), stored);
    // The entry is stored once: later changes by other processes stay.
    fixture.store().remove("openai").unwrap();
    store.set("openrouter", &key("k")).unwrap();
    assert_eq!(store.entry("openai"), None);
}

/// Regression: the next change of any entry overwrote or removed it.
#[test]
fn later_changes_of_others_replace_unsaved_entries() {
    let fixture = Fixture::with("{}");
    let store = fixture.store();
    let lock = FileLock::acquire(&fixture.path()).unwrap();
    store.set("openai", &key("mine")).unwrap_err();
    drop(lock);
    fixture.store().set("openai", &key("theirs")).unwrap();
    store.set("groq", &key("k")).unwrap();
    assert_eq!(store.entry("openai"), Some(key("theirs")));
    assert_eq!(fixture.store().entry("openai"), Some(key("theirs")));

    fs::write(fixture.path(), "{").unwrap();
    store.reload();
    store.set("openai", &key("mine")).unwrap_err();
    store.remove("groq").unwrap_err();
    let by_hand =
        r#"{"openai": {"type": "api_key", "key": "o"}, "groq": {"type": "api_key", "key": "g"}}"#;
    fs::write(fixture.path(), by_hand).unwrap();
    store.reload();
    store.set("mistral", &key("k")).unwrap();
    let stored = fixture.store();
    assert_eq!(stored.entry("openai"), Some(key("o")));
    assert_eq!(stored.entry("groq"), Some(key("g")));
}

#[test]
fn copies_that_a_killed_process_left_behind_are_removed() {
    let fixture = Fixture::with("{}");
    let left = fixture.path().with_file_name(".auth-Ab3dE6");
    let file = fs::File::create(&left).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    file.set_modified(long_ago).unwrap();
    fixture.store().set("openai", &key("k")).unwrap();
    assert!(!left.exists());
}

#[test]
fn half_a_file_is_read_again_while_its_writer_holds_the_lock() {
    let fixture = Fixture::with(r#"{"openai": {"type": "api_"#);
    let lock = FileLock::acquire(&fixture.path()).unwrap();
    let path = fixture.path();
    let writer = thread::spawn(move || {
        thread::sleep(REREAD_PAUSE);
        fs::write(path, r#"{"openai": {"type": "api_key", "key": "k"}}"#).unwrap();
        drop(lock);
    });
    let store = fixture.store();
    assert_eq!(store.entry("openai"), Some(key("k")));
    writer.join().unwrap();
}

#[test]
fn two_writers_lose_nothing() {
    let fixture = Fixture::with("{}");
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let store = fixture.store();
            scope.spawn(move || {
                for n in 0..5 {
                    let provider = format!("{name}{n}");
                    // Waits for the lock, but not forever.
                    while store.set(&provider, &key("k")).is_err() {}
                }
            });
        }
    });
    assert_eq!(fixture.content().as_object().unwrap().len(), 15);
}

/// Renews credentials as a server does that accepts each refresh token once.
struct OneTimeTokens {
    refreshed: parking_lot::Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl SignIn for OneTimeTokens {
    fn name(&self) -> String {
        "one-time tokens".to_owned()
    }

    async fn login(
        &self,
        _: std::sync::Arc<dyn crate::auth::oauth::LoginDialog>,
        _: tokio_util::sync::CancellationToken,
    ) -> Result<OAuthCredentials, SignInError> {
        Err(SignInError::new("not asked for"))
    }

    async fn refresh(&self, stored: OAuthCredentials) -> Result<OAuthCredentials, SignInError> {
        let token = stored["refresh"].as_str().unwrap().to_owned();
        // Other processes see the file as it was.
        tokio::task::yield_now().await;
        self.refreshed.lock().push(token.clone());
        let mut renewed = stored;
        renewed.insert("refresh".into(), format!("{token}+").into());
        renewed.insert("access".into(), "new".into());
        renewed.insert("expires".into(), i64::MAX.into());
        Ok(renewed)
    }
}

/// Two processes that renewed at once used one refresh token twice, or one overwrote the other's
/// tokens.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn renewals_at_once_use_each_token_once() {
    let expired =
        |token: &str| json!({"type": "oauth", "refresh": token, "access": "", "expires": 1});
    let all = json!({"a": expired("a"), "b": expired("b"), "c": {"type": "api_key", "key": "k"}});
    let fixture = Fixture::with(&all.to_string());
    let server = std::sync::Arc::new(OneTimeTokens {
        refreshed: parking_lot::Mutex::default(),
    });
    // Each process has a store of its own.
    let renewals = (0..8).map(|number| {
        let (store, server) = (fixture.store(), server.clone());
        tokio::spawn(async move {
            let provider = if number % 2 == 0 { "a" } else { "b" };
            let renewed = store.renew(provider, &*server).await.unwrap().unwrap();
            assert_eq!(renewed["refresh"], format!("{provider}+"));
            store.set(&format!("n{number}"), &key("k")).unwrap();
        })
    });
    for renewal in renewals.collect::<Vec<_>>() {
        renewal.await.unwrap();
    }
    let mut refreshed = server.refreshed.lock().clone();
    refreshed.sort();
    assert_eq!(refreshed, ["a", "b"]);
    let content = fixture.content();
    assert_eq!(content["a"]["refresh"], "a+");
    assert_eq!(content["b"]["refresh"], "b+");
    assert_eq!(content.as_object().unwrap().len(), 3 + 8);
    assert_eq!(Fixture::mode(&fixture.path()), 0o600);
}

#[test]
fn a_linked_file_stays_a_link() {
    let fixture = Fixture::with("{}");
    let real = fixture.dir.path().join("dotfiles.json");
    fs::rename(fixture.path(), &real).unwrap();
    symlink(&real, fixture.path()).unwrap();
    fixture.store().set("xai", &key("k")).unwrap();
    assert!(fixture.path().is_symlink());
    assert!(fs::read_to_string(real).unwrap().contains("xai"));
}

#[test]
fn entries_without_a_key_do_not_count() {
    let fixture = Fixture::with(
        r#"{"a": {"type": "api_key", "key": ""}, "b": {"type": "oauth"}, "c": "sk", "d": {"key": "k"}, "e": null}"#,
    );
    assert_eq!(fixture.store().providers(), Vec::<String>::new());
}

#[test]
fn debug_shows_no_key() {
    let fixture = Fixture::with(r#"{"a": {"type": "api_key", "key": "sk-secret"}}"#);
    let store = fixture.store();
    store.set_runtime_key("b", "sk-secret");
    let oauth = AuthEntry::OAuth {
        access: "sk-secret".into(),
        refresh: "sk-secret".into(),
        expires: None,
    };
    let shown = format!("{store:?} {:?} {oauth:?}", store.entry("a"));
    assert!(!shown.contains("sk-secret"), "{shown}");
}
