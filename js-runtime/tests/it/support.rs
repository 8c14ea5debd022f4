//! A folder of files, a host that records, and a runtime with both.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use js_runtime::{
    Author, CallError, Console, Fault, Host, HostError, HostProcess, LoadError, Runtime,
    RuntimeOptions, Stop,
};
use serde_json::{Value, json};

pub(crate) const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// A folder under the system's temporary folder, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("js-runtime-{}-{number}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        _ = std::fs::remove_dir_all(&path);
        let folder = Self(path);
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Default)]
pub(crate) struct TestHost {
    /// Extension and handler by event.
    handlers: Mutex<HashMap<String, (u64, u64)>>,
    pub lines: Mutex<Vec<(Console, String)>>,
    pub faults: Mutex<Vec<Fault>>,
}

impl Host for TestHost {
    fn call_sync(&self, method: &str, args: &str) -> Result<String, HostError> {
        let args: Value = serde_json::from_str(args).unwrap();
        match method {
            "pi.on" => {
                let handler = (
                    args["extension"].as_u64().unwrap(),
                    args["id"].as_u64().unwrap(),
                );
                let event = args["event"].as_str().unwrap().to_string();
                self.handlers.lock().unwrap().insert(event, handler);
                Ok(String::new())
            }
            "enter" => Ok(String::new()),
            "pi.getFlag" => Err(HostError {
                class: "RangeError",
                message: format!("no flag {}", args["name"]),
            }),
            "pi.getSessionName" => Ok("\"a name\"".into()),
            other => Err(HostError::new(format!("the test host has no {other}"))),
        }
    }

    fn call(
        self: Arc<Self>,
        method: String,
        _args: String,
    ) -> BoxFuture<'static, Result<String, HostError>> {
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            match method.as_str() {
                "pi.setModel" => Ok("true".into()),
                "pi.exec" => std::future::pending().await,
                other => Err(HostError::new(format!("the test host has no {other}"))),
            }
        }
        .boxed()
    }

    fn console(&self, console: Console, line: &str) {
        self.lines.lock().unwrap().push((console, line.into()));
    }

    fn fault(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }
}

impl TestHost {
    pub fn lines(&self) -> Vec<(Console, String)> {
        self.lines.lock().unwrap().clone()
    }

    pub fn faults(&self) -> Vec<Fault> {
        self.faults.lock().unwrap().clone()
    }

    /// Returns reason, author and frames of the only fault, a stop.
    pub fn stopped(&self) -> ((Stop, Option<Author>), String) {
        let faults = self.faults();
        let [
            Fault::Stopped {
                stop,
                author,
                stack,
            },
        ] = &faults[..]
        else {
            panic!("{faults:?}")
        };
        ((*stop, author.clone()), stack.clone())
    }
}

/// A runtime with its host.
pub(crate) struct Js {
    pub host: Arc<TestHost>,
    pub runtime: Runtime,
}

/// Options for a thread, or with `PI_TEST_EXTENSION_HOST=process` for a host process.
pub(crate) fn options() -> RuntimeOptions {
    let place = std::env::var("PI_TEST_EXTENSION_HOST");
    RuntimeOptions {
        max_heap: 256 << 20,
        process: place.is_ok_and(|place| place == "process").then(process),
        one_way: vec!["enter".into()],
        ..RuntimeOptions::default()
    }
}

/// Starts this test program as a host process, with arguments that run only the test `serves`.
pub(crate) fn process() -> HostProcess {
    HostProcess {
        args: ["--exact", "support::serves", "--nocapture", "--quiet"]
            .map(Into::into)
            .into(),
        ..HostProcess::this_program().unwrap()
    }
}

/// Does nothing when it runs as a test.
#[test]
fn serves() {
    if let Some(code) = js_runtime::run_if_host_process() {
        std::process::exit(code.into());
    }
}

impl Js {
    pub fn start() -> Self {
        Self::with(options())
    }

    pub fn with(options: RuntimeOptions) -> Self {
        let host = Arc::new(TestHost::default());
        let own_process = options.process.is_some();
        let runtime = Runtime::start(options, host.clone()).unwrap();
        assert_eq!(runtime.process_id().is_some(), own_process);
        Self { host, runtime }
    }

    pub async fn load(&self, id: u32, path: &Path) -> Result<(), LoadError> {
        self.runtime.load(id, path, LOAD_LIMIT).await
    }

    /// Returns the result of the handler of `event`, with `null` for none.
    pub async fn dispatch(&self, event: &str, payload: Value) -> Result<Value, CallError> {
        let (extension, handler) = self.host.handlers.lock().unwrap()[event];
        let args = json!({
            "extension": extension,
            "handler": handler,
            "event": { "type": event, "value": payload },
        });
        let answer = self.runtime.call("dispatch", args.to_string()).await?;
        Ok(match answer {
            Some(json) => serde_json::from_str::<Value>(&json).unwrap()["result"].take(),
            None => Value::Null,
        })
    }

    /// Loads one extension and returns the result of its event "get".
    pub async fn get(&self, path: &Path) -> Value {
        self.load(1, path).await.unwrap();
        self.dispatch("get", Value::Null).await.unwrap()
    }

    /// Waits until `condition` holds; the test runner ends a test that waits in vain.
    pub async fn until(&self, condition: impl Fn(&TestHost) -> bool) {
        while !condition(&self.host) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub async fn until_stopped(&self, reason: Stop) {
        self.until(|host| {
            host.faults()
                .iter()
                .any(|fault| matches!(fault, Fault::Stopped { stop, .. } if *stop == reason))
        })
        .await;
    }
}

/// Returns an extension whose event "get" returns the value of `expression`.
pub(crate) fn answering(imports: &str, expression: &str) -> String {
    format!(
        "{imports}\nexport default (pi: any) => {{ pi.on(\"get\", async () => ({expression})); }};\n"
    )
}

/// Returns one extension with a `handler` for each event.
pub(crate) fn handlers(list: &[(&str, &str)]) -> String {
    let list: String = list
        .iter()
        .map(|(event, handler)| format!("  pi.on(\"{event}\", {handler});\n"))
        .collect();
    format!("export default (pi: any) => {{\n{list}}};\n")
}

/// Panics instead of hanging when `future` takes much too long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let started = Instant::now();
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(value) => value,
        Err(_) => panic!("nothing after {:?}", started.elapsed()),
    }
}
