//! Time, memory and isolation of extensions, and where their output goes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::bridge::ConsoleSink;
use pi_ai::models::registry::ModelRegistry;
use pi_resources::paths::Paths;
use pi_resources::settings::{ExtensionHost, ExtensionTimeouts, Settings};

/// Limits from the settings for one generation.
#[derive(Clone, Debug)]
pub struct GenerationLimits {
    pub timeouts: ExtensionTimeouts,
    /// Maximum size of the heap in bytes.
    pub max_heap: usize,
    /// Whether the extensions run on a thread of this process or in a process of their own.
    pub host: ExtensionHost,
}

#[derive(Clone)]
pub struct ExtensionsConfig {
    /// Limits of the first generation; [`super::Extensions::set_limits`] changes later
    /// ones.
    pub limits: GenerationLimits,
    pub cache_dir: Option<PathBuf>,
    /// The registry that providers are registered in.
    pub models: Arc<ModelRegistry>,
    pub console: ConsoleSink,
}

impl GenerationLimits {
    pub fn new(settings: &Settings) -> Self {
        let values = settings.values();
        let timeouts = &values.extension_timeouts;
        // A user at a breakpoint takes longer than any handler.
        let limit = |limit| match js_runtime::is_inspected() {
            true => Duration::MAX,
            false => limit,
        };
        Self {
            timeouts: ExtensionTimeouts {
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
            host: values.extension_host,
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
            limits: GenerationLimits::new(settings),
            cache_dir: Some(paths.agent_dir.join("cache").join("js")),
            models,
            console,
        }
    }
}
