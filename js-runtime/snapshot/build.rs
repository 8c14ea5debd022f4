//! Makes the startup snapshot, and tables of what is not in it: the text of modules that were not
//! imported while it was made, and the exports of our own modules.

mod corrections;
mod layer;
mod namespace;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use deno_runtime::deno_core;
use deno_runtime::ops::bootstrap::SnapshotOptions;
use sha2::{Digest, Sha256};

fn main() {
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let layer = layer::layer(
        SnapshotOptions {
            ts_version: "n/a".to_string(),
            v8_version: deno_core::v8::VERSION_STRING,
            target: std::env::var("TARGET").expect("cargo sets it"),
        },
        vec![js_runtime_ext::js_runtime::lazy_init()],
    );
    for path in &layer.snapshot.files_loaded_during_snapshot {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let snapshot = &layer.snapshot.output;
    std::fs::write(out_dir.join("SNAPSHOT.bin"), snapshot).expect("OUT_DIR is writable");
    let mut id = Sha256::new();
    id.update(snapshot);

    let consumed: HashSet<&str> = layer
        .snapshot
        .consumed_lazy_specifiers
        .iter()
        .map(String::as_str)
        .collect();
    let (mut js, mut esm, mut own) = (Vec::new(), Vec::new(), HashMap::new());
    for file in &layer.lazy_files {
        println!("cargo:rerun-if-changed={}", file.path.display());
        let residual = !consumed.contains(file.specifier);
        let is_own = file.specifier.starts_with("pi:");
        if !residual && !is_own {
            continue;
        }
        let source = transpile(file.specifier, &file.path);
        let source = corrections::corrected(file.specifier, source);
        let source = namespace::renamed(file.specifier, source);
        if is_own {
            own.insert(
                file.specifier.to_string(),
                Exports::parse(file.specifier, &source),
            );
        }
        if !residual {
            continue;
        }
        let list = match file.kind {
            layer::Kind::Script => &mut js,
            layer::Kind::Module => &mut esm,
        };
        // V8 takes the text as a static one-byte string.
        assert!(source.is_ascii(), "{} is not ASCII", file.specifier);
        id.update(&source);
        let name: String = file
            .specifier
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        std::fs::write(out_dir.join(format!("{name}.js")), source).expect("OUT_DIR is writable");
        list.push((file.specifier, name));
    }

    for specifier in corrections::specifiers() {
        let is_text = js.iter().chain(&esm).any(|(text, _)| *text == specifier);
        assert!(
            is_text,
            "{specifier} is in the snapshot, where it is not corrected"
        );
    }

    shrink(&out_dir, js.iter().chain(&esm).map(|(_, name)| name));
    for (specifier, name) in &js {
        let path = out_dir.join(format!("{name}.js"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{specifier}: {e}"));
        let wrapped = deno_core::wrap_lazy_ext_script(&text);
        std::fs::write(&path, wrapped).expect("OUT_DIR is writable");
    }

    let mut code = String::new();
    for (table, mut entries) in [("RESIDUAL_LAZY_JS", js), ("RESIDUAL_LAZY_ESM", esm)] {
        entries.sort();
        _ = writeln!(code, "pub static {table}: &[(&str, &str)] = &[");
        for (specifier, name) in entries {
            _ = writeln!(
                code,
                "    ({specifier:?}, include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.js\"))),"
            );
        }
        _ = writeln!(code, "];");
    }
    let mut specifiers: Vec<&String> = own.keys().collect();
    specifiers.sort();
    _ = writeln!(code, "pub static EXPORTS: &[(&str, &[&str])] = &[");
    for specifier in specifiers {
        let mut names = BTreeSet::new();
        collect(&own, specifier, &mut names, &mut HashSet::new());
        _ = writeln!(
            code,
            "    ({specifier:?}, &{names:?}),",
            names = Vec::from_iter(names)
        );
    }
    _ = writeln!(code, "];");
    _ = writeln!(code, "pub static ID: &str = \"{:x}\";", id.finalize());
    std::fs::write(out_dir.join("tables.rs"), code).expect("OUT_DIR is writable");
}

/// Removes comments and white space from the texts, which are a third of their size in the program.
fn shrink<'a>(out_dir: &Path, names: impl Iterator<Item = &'a String>) {
    let status = Command::new("node")
        .arg(Path::new(js_runtime_ext::NPM_DIR).join("node_modules/esbuild/bin/esbuild"))
        .args([
            "--minify-whitespace",
            "--legal-comments=none",
            "--charset=ascii",
        ])
        .args(["--log-level=error", "--allow-overwrite", "--outdir=."])
        .args(names.map(|name| format!("{name}.js")))
        .current_dir(out_dir)
        .status();
    assert!(
        status.as_ref().is_ok_and(ExitStatus::success),
        "esbuild: {status:?}"
    );
}

fn transpile(specifier: &str, path: &Path) -> String {
    let source =
        std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (code, _source_map) = deno_runtime::transpile::maybe_transpile_source(
        specifier.to_string().into(),
        source.into(),
    )
    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    code.as_str().to_string()
}

/// Names that one of our own modules exports itself, and the modules of which it exports
/// everything.
struct Exports {
    names: Vec<String>,
    stars: Vec<String>,
}

impl Exports {
    fn parse(specifier: &str, code: &str) -> Self {
        let parsed = deno_ast::parse_program(deno_ast::ParseParams {
            specifier: deno_ast::ModuleSpecifier::parse(specifier).expect("it has a scheme"),
            text: code.into(),
            media_type: deno_ast::MediaType::JavaScript,
            capture_tokens: false,
            scope_analysis: false,
            maybe_syntax: None,
        })
        .unwrap_or_else(|e| panic!("{specifier}: {e}"));
        let found = parsed.analyze_es_runtime_exports();
        Self {
            names: found.exports,
            stars: found.reexports,
        }
    }
}

fn collect(
    modules: &HashMap<String, Exports>,
    specifier: &str,
    names: &mut BTreeSet<String>,
    seen: &mut HashSet<String>,
) {
    if !seen.insert(specifier.to_string()) {
        return;
    }
    let Some(module) = modules.get(specifier) else {
        panic!("{specifier} is exported with `*`, but is no module of ours");
    };
    names.extend(module.names.iter().cloned());
    for star in &module.stars {
        let mut inner = BTreeSet::new();
        collect(modules, star, &mut inner, seen);
        inner.remove("default");
        names.extend(inner);
    }
}
