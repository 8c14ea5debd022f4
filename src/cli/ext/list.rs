//! `pi ext list`: lists the extensions that a session here would load.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use super::{LoadedSet, print_json, why_not_loaded, with_code_frame};
use crate::cli::doctor::{check_loadable, entry_module};
use crate::cli::{CliError, output, paths};
use pi_extensions::diagnostics::error_context::extension_name;
use pi_extensions::registry::RendererKind;
use pi_extensions::registry::inventory::DescribedExtension;
use pi_resources::discovery::extensions::{
    ExtensionPath, ExtensionPaths, ResourceSources, find_extensions,
};
use pi_resources::paths::Paths;
use pi_resources::settings::Settings;
use pi_resources::source_info::SourceInfo;

/// Description of an extension without running its code.
#[derive(Serialize)]
struct OnDisk {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    path: String,
    source: SourceInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub fn run(is_static: bool, json: bool) -> Result<u8, CliError> {
    let paths = paths()?;
    let found = find(&paths);
    let problems: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
    let mut text = String::new();
    let (list, failed) = if is_static {
        let all: Vec<OnDisk> = found.paths.iter().map(on_disk).collect();
        for one in &all {
            text += &heading(&one.name, one.version.as_deref(), &one.source, &one.path);
            text += &error_lines(one.error.as_deref());
        }
        let failed = all.iter().any(|one| one.error.is_some());
        (json!(all), failed)
    } else {
        let loaded = LoadedSet::load(found.paths, &paths)?;
        let mut all = Vec::new();
        for one in &loaded.extensions {
            let version = one.name.version.as_deref();
            text += &heading(&one.name.name, version, &one.source, &one.path);
            text += &match &one.error {
                None => format!("  loaded in {:.1} ms\n", one.load_ms),
                _ => error_lines(why_not_loaded(one).as_deref()),
            };
            let mut shown = json!(one);
            if one.error.is_none() {
                // Failed registrations, and errors right after loading.
                let own = loaded.reports.iter();
                let own = own.filter(|(path, _)| *path == one.path);
                let own: Vec<&String> = own.map(|(_, report)| report).collect();
                text += &own
                    .iter()
                    .map(|report| error_lines(Some(report)))
                    .collect::<String>();
                if !own.is_empty() {
                    shown["problems"] = json!(own);
                }
            }
            text += &registrations(one);
            all.push(shown);
        }
        let failed =
            !loaded.reports.is_empty() || loaded.extensions.iter().any(|one| one.error.is_some());
        (json!(all), failed)
    };
    if json {
        print_json(&json!({ "extensions": list, "problems": problems }))?;
    } else {
        if text.is_empty() {
            text = "There are no extensions. They go into ~/.pi/agent/extensions or \
                    .pi/extensions.\n"
                .to_owned();
        }
        for problem in &problems {
            let _ = writeln!(text, "problem: {problem}");
        }
        output(&text)?;
    }
    Ok(u8::from(failed))
}

fn find(paths: &Paths) -> ExtensionPaths {
    find_extensions(&ResourceSources {
        paths,
        settings: &Settings::load(paths),
        cli_extensions: &[],
        discover: true,
    })
}

fn on_disk(found: &ExtensionPath) -> OnDisk {
    let name = extension_name(&found.path);
    OnDisk {
        name: name.name,
        version: name.version,
        path: found.path.display().to_string(),
        source: found.source_info.clone(),
        error: match entry_module(&found.path) {
            None => Some("It is no module: there is no index.ts or index.js in it".to_owned()),
            Some(module) => check_loadable(&module)
                .err()
                .map(|problem| with_code_frame(&module, problem)),
        },
    }
}

fn heading(name: &str, version: Option<&str>, source: &SourceInfo, path: &str) -> String {
    let version = version
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    let scope = json!(source.scope);
    let scope = scope.as_str().unwrap_or_default();
    format!("{name}{version}  ({}, {scope})\n  {path}\n", source.source)
}

fn error_lines(error: Option<&str>) -> String {
    let lines = error.into_iter().flat_map(str::lines).enumerate();
    let lines = lines.map(|(index, line)| match index {
        0 => format!("  error: {line}\n"),
        _ => format!("    {line}\n"),
    });
    lines.collect()
}

fn registrations(one: &DescribedExtension) -> String {
    let row = |what: &str, names: Vec<String>| match names.is_empty() {
        true => String::new(),
        false => format!("  {what:<9} {}\n", names.join(", ")),
    };
    let tools = one.tools.iter().map(|tool| tool.name.clone()).collect();
    let commands = one
        .commands
        .iter()
        .map(|command| format!("/{}", command.name));
    let flags = one.flags.iter().map(|flag| format!("--{}", flag.name));
    let shortcuts = one.shortcuts.iter().map(|shortcut| shortcut.key.clone());
    let draws = one.renderers.iter().map(|renderer| {
        let kind = match renderer.kind {
            RendererKind::Message => "messages",
            RendererKind::Entry => "entries",
            RendererKind::Tool => "tools",
            RendererKind::Markdown => "Markdown",
        };
        match &renderer.custom_type {
            Some(of) => format!("{kind} {of}"),
            None => kind.to_owned(),
        }
    });
    let events = one.events.iter().map(|event| (*event).to_owned());
    let rows = [
        row("tools", tools),
        row("commands", commands.collect()),
        row("flags", flags.collect()),
        row("shortcuts", shortcuts.collect()),
        row("draws", draws.collect()),
        row("providers", one.providers.clone()),
        row("events", events.collect()),
    ];
    rows.concat()
}
