//! Random changes of files, after each of which the watch must make what `/reload` makes.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, pause};

/// Steps of a normal test run, which takes less than a minute.
const DEFAULT_STEPS: u64 = 60;
const DEFAULT_SEED: u64 = 38;

/// A missing extension stays for five seconds.
const STEP_DEADLINE: Duration = Duration::from_secs(20);

const ENTRIES: u64 = 5;
const LIBRARIES: u64 = 5;
const PACKAGES: u64 = 2;

fn number_from(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |given| given.parse().expect("a number"))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// The extensions' folder, which changes.
struct World {
    folder: PathBuf,
    /// Files to which links lead.
    store: PathBuf,
    random: Random,
    /// Number of the next version of a file.
    version: u64,
}

impl World {
    fn entry_path(&mut self) -> PathBuf {
        let number = self.random.below(ENTRIES);
        match number % 2 {
            0 => self.folder.join(format!("e{number}.ts")),
            _ => self.folder.join(format!("e{number}/index.ts")),
        }
    }

    fn library_path(&mut self) -> PathBuf {
        let number = self.random.below(LIBRARIES);
        // The JavaScript file wins over the other.
        let ending = if self.random.below(6) == 0 {
            "js"
        } else {
            "ts"
        };
        self.folder.join(format!("lib/l{number}.{ending}"))
    }

    fn version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// An extension that shows what it was loaded from as the description of a command.
    fn entry_source(&mut self, path: &Path) -> String {
        let version = self.version();
        let is_folder = path.ends_with("index.ts");
        let above = if is_folder { "../lib" } else { "./lib" };
        let name = if is_folder {
            path.parent().unwrap()
        } else {
            path
        };
        let name = name.file_stem().unwrap().to_str().unwrap();
        let mut imports = String::new();
        let mut values = format!("\"{name} {version}\"");
        for number in 0..LIBRARIES {
            if self.random.below(4) == 0 {
                let from = format!("{above}/l{number}");
                let _ = writeln!(imports, "import {{ value as l{number} }} from \"{from}\";");
                let _ = write!(values, ", l{number}");
            }
        }
        if self.random.below(8) == 0 {
            let number = self.random.below(PACKAGES);
            let _ = writeln!(
                imports,
                "import {{ value as p{number} }} from \"p{number}\";"
            );
            let _ = write!(values, ", p{number}");
        }
        format!(
            "{imports}export default (pi) => pi.registerCommand(\"{name}\", {{
                description: [{values}].join(\" \"), handler: async () => {{}} }});\n"
        )
    }

    fn library_source(&mut self) -> String {
        format!("export const value = \"v{}\";\n", self.version())
    }

    fn write(path: &Path, text: &str) {
        // A link must not be written through: its target may be another step's.
        if path.is_symlink() {
            fs::remove_file(path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn write_entry(&mut self) {
        let path = self.entry_path();
        let source = self.entry_source(&path);
        Self::write(&path, &source);
    }

    fn write_library(&mut self) {
        let path = self.library_path();
        let source = self.library_source();
        Self::write(&path, &source);
    }

    /// Replaces a file as editors do.
    fn replace_library(&mut self) {
        let path = self.library_path();
        let source = self.library_source();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("tmp");
        fs::write(&new, source).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn remove(path: &Path) {
        let _ = fs::remove_file(path);
        if path.ends_with("index.ts") {
            let _ = fs::remove_dir(path.parent().unwrap());
        }
    }

    fn break_entry(&mut self) {
        let path = self.entry_path();
        let mut source = self.entry_source(&path);
        source += match self.random.below(2) {
            0 => "const = ;",
            _ => "throw new Error(\"broken\");",
        };
        Self::write(&path, &source);
    }

    fn rename(&mut self) {
        let (from, to) = (self.library_path(), self.library_path());
        if from.exists() && from != to {
            fs::rename(from, to).unwrap();
        }
    }

    /// Makes a library a link, or lets the link lead elsewhere.
    fn link(&mut self) {
        let path = self.library_path();
        let ending = path.extension().unwrap().to_str().unwrap();
        let target = self.store.join(format!("{}.{ending}", self.version));
        let source = self.library_source();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        // The link is sometimes filled later.
        if self.random.below(4) == 0 {
            symlink(&target, &path).unwrap();
            std::thread::sleep(Duration::from_millis(self.random.below(300)));
            fs::write(&target, source).unwrap();
        } else {
            fs::write(&target, source).unwrap();
            symlink(&target, &path).unwrap();
        }
    }

    /// Installs a package, another version of it, or removes it.
    fn install(&mut self) {
        let number = self.random.below(PACKAGES);
        let package = self.folder.join(format!("node_modules/p{number}"));
        if self.random.below(4) == 0 {
            let _ = fs::remove_dir_all(&package);
            return;
        }
        let version = self.version();
        let manifest = json!({ "name": format!("p{number}"), "version": format!("{version}.0.0"), "type": "module" });
        Self::write(&package.join("package.json"), &manifest.to_string());
        Self::write(&package.join("index.js"), &self.library_source());
    }

    /// Changes several files at once.
    fn checkout(&mut self) {
        for _ in 0..3 + self.random.below(6) {
            match self.random.below(6) {
                0 | 1 => self.write_entry(),
                2 => {
                    let path = self.library_path();
                    Self::remove(&path);
                }
                _ => self.write_library(),
            }
        }
    }

    fn step(&mut self) -> &'static str {
        match self.random.below(40) {
            0..8 => {
                self.write_entry();
                "write an extension"
            }
            8..16 => {
                self.write_library();
                "write a library"
            }
            16..20 => {
                self.replace_library();
                "replace a library"
            }
            20 => {
                let path = self.entry_path();
                Self::remove(&path);
                "remove an extension"
            }
            21 | 22 => {
                let path = self.library_path();
                Self::remove(&path);
                "remove a library"
            }
            23..26 => {
                self.rename();
                "rename a library"
            }
            26..30 => {
                self.link();
                "link a library"
            }
            30..33 => {
                self.checkout();
                "check out"
            }
            33..36 => {
                self.break_entry();
                "break an extension"
            }
            _ => {
                self.install();
                "install a package"
            }
        }
    }
}

/// Names of the extensions whose files do not load. Whether a last good version goes on, and which,
/// depends on what was there at the moments of earlier reloads.
fn not_loaded(report: &Value) -> Vec<String> {
    let lists = ["kept", "failed"].into_iter();
    let all = lists.flat_map(|list| report[list].as_array().unwrap());
    let name = |one: &Value| {
        let path = Path::new(one["path"].as_str().unwrap());
        let named = match path.ends_with("index.ts") {
            true => path.parent().unwrap(),
            false => path,
        };
        named.file_stem().unwrap().to_str().unwrap().to_owned()
    };
    all.map(name).collect()
}

/// Texts that the extensions show, except those that are `not_loaded`.
async fn shown(rpc: &mut Rpc, not_loaded: &[String]) -> Vec<String> {
    let answer = rpc.ok(json!({"type": "get_commands"})).await;
    let commands = answer["commands"].as_array().unwrap();
    let own = commands
        .iter()
        .filter(|command| command["source"] == "extension")
        .filter(|command| not_loaded.iter().all(|name| command["name"] != **name));
    let text = |command: &Value| {
        command["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut shown: Vec<String> = own.map(text).collect();
    shown.sort();
    shown
}

/// Any seed and number of steps:
/// `PI_WATCH_SEED=7 PI_WATCH_STEPS=2000 cargo test --workspace --test it -- random_changes --nocapture`.
#[tokio::test]
async fn random_changes_are_loaded_as_a_reload_loads_them() {
    let seed = number_from("PI_WATCH_SEED", DEFAULT_SEED);
    let steps = number_from("PI_WATCH_STEPS", DEFAULT_STEPS);
    let server = ModelServer::start().await;
    let (watched, manual) = (Home::new(&server), Home::new(&server));
    watched.settings(json!({ "extensionWatch": true }));
    let folder = watched.agent_dir().join("extensions");
    let store = watched.cwd().join("store");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&store).unwrap();
    symlink(&folder, manual.agent_dir().join("extensions")).unwrap();
    let mut world = World {
        folder,
        store,
        random: Random(seed),
        version: 0,
    };
    world.checkout();
    let mut watching = watched.rpc(&[]);
    let mut reloading = manual.rpc(&[]);
    let mut slowest = Duration::ZERO;
    for step in 0..steps {
        let name = world.step();
        let started = Instant::now();
        let report = reloading.ok(json!({"type": "reload"})).await;
        let not_loaded = not_loaded(&report);
        let expected = shown(&mut reloading, &not_loaded).await;
        loop {
            let found = shown(&mut watching, &not_loaded).await;
            if found == expected {
                break;
            }
            assert!(
                started.elapsed() < STEP_DEADLINE,
                "seed {seed}, step {step} ({name}): the watch made\n{found:#?}\nand /reload made\n\
                 {expected:#?}\n{report:#}\n{:#?}",
                watch_messages(&watching)
            );
            pause(20).await;
        }
        if name != "remove an extension" {
            slowest = slowest.max(started.elapsed());
        }
    }
    println!("seed {seed}: {steps} steps, slowest {slowest:?}");
}

/// The last messages of the watch.
fn watch_messages(rpc: &Rpc) -> Vec<String> {
    let lines = rpc.lines();
    let texts = lines.iter().rev().filter_map(|line| {
        let text = line["message"].as_str().or(line["error"].as_str())?;
        Some(text.to_owned())
    });
    texts.take(8).collect()
}
