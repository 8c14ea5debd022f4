//! Measures the bridge alone: one handler and one tool that do nothing, called from the program's
//! threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_ai::models::registry::ModelRegistry;
use pi_extensions::{Extensions, ExtensionsConfig, GenerationLimits};
use pi_resources::discovery::extensions::ExtensionPath;
use pi_resources::settings::{ExtensionHost, ExtensionTimeouts};
use pi_resources::source_info::SourceInfo;
use pi_tools::tool::ToolInvocation;
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use super::print;

const CALLS: usize = 10_000;
const SINGLE_CALLS: usize = 300;
const PAUSE_BEFORE_CALL: Duration = Duration::from_millis(10);

const SOURCE: &str = r#"
export default function (pi) {
  pi.on("tool_call", async () => {});
  pi.registerTool({
    name: "noop", label: "noop", description: "nothing",
    parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [], details: {} }),
  });
}
"#;

/// Measures extensions on a thread of this process, and in a process of their own.
pub async fn round_trips() {
    for (host, name) in [
        (ExtensionHost::Thread, ""),
        (ExtensionHost::Process, ", own process"),
    ] {
        round_trips_in(host, name).await;
    }
}

async fn round_trips_in(host: ExtensionHost, name: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("noop.ts");
    std::fs::write(&path, SOURCE).expect("a file");
    let limit = Duration::from_secs(10);
    let extensions = Extensions::new(ExtensionsConfig {
        limits: GenerationLimits {
            timeouts: ExtensionTimeouts {
                handler: limit,
                load: limit,
                spin: limit,
                shutdown: limit,
                ..ExtensionTimeouts::default()
            },
            max_heap: 256 << 20,
            host,
        },
        cache_dir: None,
        models: Arc::new(ModelRegistry::load(folder.path())),
        console: Arc::new(|_, _| {}),
    });
    let report = extensions
        .load(vec![ExtensionPath {
            path,
            source_info: SourceInfo::builtin("bench"),
        }])
        .await;
    assert!(report.failed.is_empty(), "{report:?}");

    let cancel = CancellationToken::new();
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let event: Map<_, _> = [
            ("toolName".to_string(), json!("bash")),
            ("toolCallId".to_string(), json!("call_1")),
            ("input".to_string(), json!({ "command": "ls" })),
        ]
        .into_iter()
        .collect();
        let start = Instant::now();
        extensions.deliver("tool_call", || event, &cancel).await;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    print(
        &format!("tool_call handler, awaited round trip{name}"),
        "us",
        &mut times,
        None,
    );

    // Single calls are the usual case: the JavaScript thread sleeps and has to be woken.
    times.clear();
    for _ in 0..SINGLE_CALLS {
        tokio::time::sleep(PAUSE_BEFORE_CALL).await;
        let event: Map<_, _> = [("toolName".to_string(), json!("bash"))]
            .into_iter()
            .collect();
        let start = Instant::now();
        extensions.deliver("tool_call", || event, &cancel).await;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    print(
        &format!("the same after a pause of 10 ms{name}"),
        "us",
        &mut times,
        None,
    );

    let (tool, _) = extensions.tools().remove(0);
    times.clear();
    for _ in 0..CALLS {
        let call = ToolInvocation {
            id: "call_1".into(),
            args: json!({}),
            cancel: cancel.clone(),
            updates: Arc::new(|_| {}),
            started: None,
            unreadable: None,
        };
        let start = Instant::now();
        tool.execute(call).await.expect("it does nothing");
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    print(
        &format!("tool call through JavaScript, round trip{name}"),
        "us",
        &mut times,
        None,
    );
}
