//! Time, memory and isolation of extensions, and where their output goes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Limits;
use super::bridge::ConsoleSink;
use pi_ai::models::registry::ModelRegistry;
use pi_resources::paths::Paths;
use pi_resources::settings::{ExtensionHost, Settings};

/// Limits from the settings for one generation.
#[derive(Clone, Debug)]
pub struct Allowance {
    pub limits: Limits,
    /// Maximum size of the heap in bytes.
    pub max_heap: usize,
    /// Whether the extensions run on a thread of this process or in a process of their own.
    pub place: ExtensionHost,
}

#[derive(Clone)]
pub struct ExtensionsConfig {
    /// Limits of the first generation; [`super::Extensions::set_allowance`] changes later
    /// ones.
    pub allowance: Allowance,
    pub cache_dir: Option<PathBuf>,
    /// The registry that providers are registered in.
    pub models: Arc<ModelRegistry>,
    pub console: ConsoleSink,
}

impl Allowance {
    pub fn new(settings: &Settings) -> Self {
        let values = settings.values();
        let timeouts = &values.extension_timeouts;
        // A user at a breakpoint takes longer than any handler.
        let limit = |limit| match js_runtime::is_inspected() {
            true => Duration::MAX,
            false => limit,
        };
        Self {
            limits: Limits {
                handler: limit(timeouts.handler),
                load: limit(timeouts.load),
                spin: limit(timeouts.spin),
                shutdown: timeouts.shutdown,
                tool: timeouts.tool.map(limit),
                command: timeouts.command.map(limit),
                events: match js_runtime::is_inspected() {
                    true => Arc::default(),
                    false => timeouts.events.clone(),
                },
            },
            max_heap: usize::try_from(values.extension_heap_mb.get())
                .unwrap_or(usize::MAX >> 20)
                .saturating_mul(1 << 20),
            place: values.extension_host,
        }
    }
}

impl ExtensionsConfig {
    pub fn new(
        settings: &Settings,
        paths: &Paths,
        models: Arc<ModelRegistry>,
        console: ConsoleSink,
    ) -> Self {
        Self {
            allowance: Allowance::new(settings),
            cache_dir: Some(paths.agent_dir.join("cache").join("js")),
            models,
            console,
        }
    }
}
