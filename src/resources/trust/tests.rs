//! Decisions about real folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use tempfile::TempDir;

use super::file_set::{Files, ProjectFolder, digest, key_of, path_of};
use super::*;

struct Fixture {
    dir: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("home/.pi/agent")).unwrap();
        fs::create_dir_all(dir.path().join("work")).unwrap();
        Self { dir }
    }

    /// A project with an extension that is older than two seconds, so that its state counts.
    fn with_extension() -> Self {
        let fixture = Self::new();
        fixture.file(".pi/extensions/a.ts", "export default () => {}");
        fixture
    }

    fn project(&self) -> PathBuf {
        canonical(&self.dir.path().join("work"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn trust_file(&self) -> PathBuf {
        self.dir.path().join("home/.pi/agent/trust.json")
    }

    fn paths(&self) -> Paths {
        let home = self.dir.path().join("home");
        let agent_dir = home.join(".pi/agent");
        let cwd = self.project();
        Paths {
            distrust: distrust(&home, &agent_dir, &cwd),
            home,
            agent_dir,
            cwd,
        }
    }

    fn distrust(&self) -> Option<Distrust> {
        recheck(&self.paths(), &self.project());
        self.paths().distrust
    }

    fn files(&self) -> Files {
        ProjectFolder::new(&self.dir.path().join("home"), &self.project())
            .read()
            .unwrap()
    }

    fn folder(&self) -> ProjectFolder {
        ProjectFolder::new(&self.dir.path().join("home"), &self.project())
    }

    /// Returns a record with states, which count once they are two seconds old.
    fn settled_record(&self) -> Record {
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let record = Record::new(&self.folder(), &self.files(), false);
            if record.states.is_some() {
                return record;
            }
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn changes(&self) -> Vec<(Change, String)> {
        match self.distrust() {
            Some(Distrust::Changed(difference)) => {
                let files = difference.files.iter();
                let mut changes: Vec<_> = files
                    .map(|file| (file.change, key_of(&self.project(), &file.path)))
                    .collect();
                changes.sort();
                changes
            }
            other => panic!("{other:?}"),
        }
    }

    fn write_answers(&self, text: &str) {
        fs::write(self.trust_file(), text).unwrap();
    }
}

#[test]
fn folders_without_resources_are_not_asked_about() {
    let fixture = Fixture::new();
    fixture.file("AGENTS.md", "x");
    fixture.file(".pi/sessions/x.jsonl", "");
    assert_eq!(fixture.distrust(), None);
    fixture.file(".pi/mcp.json", "{}");
    assert_eq!(fixture.distrust(), Some(Distrust::Unanswered));
}

#[test]
fn answers_are_recorded_as_by_the_original() {
    let fixture = Fixture::with_extension();
    let other = r#"{"/b": false, "/a": null}"#;
    fixture.write_answers(other);
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert_eq!(fixture.distrust(), None);
    let project = fixture.project().display().to_string();
    let expected = serde_json::to_string_pretty(&BTreeMap::from([
        ("/a", None),
        ("/b", Some(false)),
        (project.as_str(), Some(true)),
    ]));
    let text = fs::read_to_string(fixture.trust_file()).unwrap();
    assert_eq!(text, format!("{}\n", expected.unwrap()));
    answer(&fixture.paths(), TrustAnswer::Deny).unwrap();
    assert!(matches!(
        fixture.distrust(),
        Some(Distrust::Recorded { .. })
    ));
}

#[test]
fn damaged_answers_are_kept_and_trust_nothing() {
    let fixture = Fixture::with_extension();
    for text in ["{", "[]", r#"{"/a": 1}"#] {
        fixture.write_answers(text);
        assert!(
            matches!(fixture.distrust(), Some(Distrust::Unreadable { .. })),
            "{text}"
        );
        assert!(answer(&fixture.paths(), TrustAnswer::Trust).is_err());
        assert_eq!(fs::read_to_string(fixture.trust_file()).unwrap(), text);
    }
}

#[test]
fn the_nearest_folder_decides() {
    let fixture = Fixture::with_extension();
    let parent = fixture.project().parent().unwrap().display().to_string();
    fixture.write_answers(&format!("{{{parent:?}: true}}"));
    assert_eq!(fixture.distrust(), None);
    let project = fixture.project().display().to_string();
    fixture.write_answers(&format!("{{{parent:?}: true, {project:?}: false}}"));
    assert!(matches!(
        fixture.distrust(),
        Some(Distrust::Recorded { .. })
    ));
    fixture.write_answers(&format!("{{{parent:?}: false, {project:?}: null}}"));
    assert!(matches!(
        fixture.distrust(),
        Some(Distrust::Recorded { .. })
    ));
}

#[test]
fn every_change_of_what_runs_is_asked_about() {
    let fixture = Fixture::with_extension();
    fixture.file(
        ".pi/extensions/a.ts",
        "import '../../lib/b.js'; import './data.json'",
    );
    fixture.file("lib/b.ts", "export {}");
    fixture.file("lib/unrelated.ts", "");
    fixture.file(".pi/extensions/data.json", "1");
    fixture.file(".pi/extensions/state.json", "1");
    fixture.file(
        ".pi/settings.json",
        r#"{"theme": "x", "packages": ["npm:a"]}"#,
    );
    fixture.file(".agents/skills/s/SKILL.md", "x");
    fixture.file(".pi/extensions/node_modules/m/index.js", "1");
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert_eq!(fixture.distrust(), None);

    fixture.file("lib/unrelated.ts", "2");
    fixture.file(".pi/extensions/state.json", "2");
    fixture.file(".pi/themes/t.json", "{}");
    fixture.file(
        ".pi/settings.json",
        r#"{"packages": ["npm:a"], "theme": "y"}"#,
    );
    fixture.file(".pi/extensions/node_modules/m/index.js", "2");
    assert_eq!(
        fixture.distrust(),
        None,
        "these neither run nor change the prompt"
    );

    for (name, text) in [
        ("lib/b.ts", "export default 1"),
        (".pi/extensions/data.json", "2"),
        (".pi/settings.json", r#"{"packages": ["npm:b"]}"#),
        (".agents/skills/s/SKILL.md", "y"),
    ] {
        let before = fs::read_to_string(fixture.project().join(name)).unwrap();
        fixture.file(name, text);
        assert_eq!(fixture.changes(), [(Change::Changed, format!("./{name}"))]);
        fixture.file(name, &before);
        assert_eq!(fixture.distrust(), None);
    }
    for name in [
        ".pi/SYSTEM.md",
        ".pi/mcp.json",
        ".pi/extensions/b.js",
        ".pi/pi.lock",
    ] {
        let path = fixture.file(name, "x");
        assert_eq!(fixture.changes(), [(Change::Added, format!("./{name}"))]);
        fs::remove_file(path).unwrap();
    }
    fs::remove_file(fixture.project().join(".agents/skills/s/SKILL.md")).unwrap();
    let removed = "./.agents/skills/s/SKILL.md".to_owned();
    assert_eq!(fixture.changes(), [(Change::Removed, removed)]);
}

#[test]
fn an_unchanged_folder_is_recognized_without_reading() {
    let fixture = Fixture::with_extension();
    let file = fixture.file(".pi/extensions/a.ts", "import '../../lib/b'");
    fixture.file("lib/b.ts", "export {}");
    fixture.file(".pi/extensions/x/package.json", "{}");
    symlink("b.ts", fixture.project().join("lib/c.ts")).unwrap();
    symlink(
        "../../../lib/c.ts",
        fixture.project().join(".pi/extensions/x/d.ts"),
    )
    .unwrap();
    let folder = fixture.folder();
    let record = fixture.settled_record();
    assert!(folder.is_unchanged_since(&record));
    record.save(&fixture.paths().agent_dir).unwrap();
    let loaded = Record::load(&fixture.paths().agent_dir, &folder.path).unwrap();
    assert!(folder.is_unchanged_since(&loaded));
    assert_eq!(*loaded.files.all(), *record.files.all());
    // Also a change that keeps size and time of modification is noticed.
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, "import '../../lib/c'").unwrap();
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(modified)
        .unwrap();
    assert!(!folder.is_unchanged_since(&record));
}

#[test]
fn a_file_that_an_import_would_find_is_noticed() {
    let fixture = Fixture::new();
    fixture.file(
        ".pi/extensions/a.ts",
        "import('../../later/b').catch(() => {}); import '../../lib/c'",
    );
    fixture.file("lib/c.ts", "");
    let folder = fixture.folder();
    let record = fixture.settled_record();
    assert!(folder.is_unchanged_since(&record));
    let nearer = fixture.file("lib/c.js", "");
    assert!(!folder.is_unchanged_since(&record));
    fs::remove_file(nearer).unwrap();
    let record = fixture.settled_record();
    fixture.file("later/b.ts", "");
    assert!(!folder.is_unchanged_since(&record));
}

#[test]
fn native_addons_outside_of_node_modules_count() {
    let fixture = Fixture::new();
    fixture.file(
        ".pi/extensions/x/index.ts",
        "import load from 'node-gyp-build'; export default load(root);",
    );
    fixture.file("node_modules/m/build/Release/m.node", "1");
    fixture.file("native/out.node", "1");
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    fixture.file("node_modules/m/build/Release/m.node", "2");
    assert_eq!(fixture.distrust(), None);
    fixture.file("native/out.node", "2");
    fixture.file(".pi/extensions/x/prebuilds/linux-x64/x.node", "1");
    assert_eq!(
        fixture.changes(),
        [
            (
                Change::Added,
                "./.pi/extensions/x/prebuilds/linux-x64/x.node".to_owned()
            ),
            (Change::Changed, "./native/out.node".to_owned()),
        ]
    );
    // An addon that is built later is found, too, by the state of the folder.
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    let record = fixture.settled_record();
    assert!(fixture.folder().is_unchanged_since(&record));
    fixture.file("build/Release/late.node", "1");
    assert!(!fixture.folder().is_unchanged_since(&record));
}

#[test]
fn names_with_newlines_do_not_collide() {
    let first = Fixture::new();
    first.file(".pi/skills/a", "1");
    first.file(".pi/skills/b", "2");
    let second = Fixture::new();
    second.file(".pi/skills/a\n./.pi/skills/b", "1");
    assert_ne!(digest(&first.files()), digest(&second.files()));
    let link = Fixture::new();
    fs::create_dir_all(link.project().join(".pi/skills")).unwrap();
    symlink("a", link.project().join(".pi/skills/link")).unwrap();
    let file = Fixture::new();
    file.file(".pi/skills/link", "a");
    assert_ne!(digest(&link.files()), digest(&file.files()));
}

#[test]
fn keys_of_paths_are_unambiguous() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let project = Path::new("/p");
    let strange = project.join(OsStr::from_bytes(b"a\xff\n"));
    for path in [
        Path::new("/p/x y"),
        Path::new("/q/x"),
        Path::new("/p/bytes:00"),
        &strange,
    ] {
        let key = key_of(project, path);
        assert_eq!(path_of(project, &key).as_deref(), Some(path), "{key}");
    }
    assert_ne!(
        key_of(project, &strange),
        key_of(project, Path::new("/p/a\u{fffd}\n"))
    );
}

#[test]
fn links_count_with_target_and_content() {
    let fixture = Fixture::new();
    let outside = fixture.dir.path().join("outside.ts");
    fs::write(&outside, "1").unwrap();
    fs::create_dir_all(fixture.project().join(".pi/extensions")).unwrap();
    let link = fixture.project().join(".pi/extensions/x.ts");
    symlink(&outside, &link).unwrap();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    fs::write(&outside, "2").unwrap();
    assert_eq!(fixture.changes().len(), 1);
    fs::write(&outside, "1").unwrap();
    assert_eq!(fixture.distrust(), None);
    let other = fixture.dir.path().join("other.ts");
    fs::write(&other, "1").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert!(!fixture.changes().is_empty());
}

#[test]
fn loops_of_links_end() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.project().join(".pi/skills")).unwrap();
    symlink("..", fixture.project().join(".pi/skills/up")).unwrap();
    symlink("self", fixture.project().join(".pi/extensions")).unwrap();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert_eq!(fixture.distrust(), None);
}

#[test]
fn own_changes_are_not_asked_about() {
    let fixture = Fixture::with_extension();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    let path = fixture.file(".pi/extensions/a.ts", "export default () => 1");
    note_own_change(&path);
    assert_eq!(fixture.distrust(), None);
    let strange = fixture.file(".pi/extensions/b.ts", "export default () => 1");
    assert_eq!(
        fixture.changes(),
        [(Change::Added, "./.pi/extensions/b.ts".to_owned())]
    );
    note_own_change(&strange);
    assert_eq!(fixture.distrust(), None);
}

#[test]
fn what_pi_wrote_into_an_empty_folder_is_trusted() {
    let fixture = Fixture::new();
    assert_eq!(fixture.distrust(), None);
    let path = fixture.file(".pi/extensions/a.ts", "export default () => 1");
    assert_eq!(fixture.paths().distrust, Some(Distrust::Unanswered));
    note_own_change(&path);
    assert_eq!(fixture.distrust(), None);
    assert!(
        fs::read_to_string(fixture.trust_file())
            .unwrap()
            .contains(": true")
    );
}

#[test]
fn what_appears_after_the_locations_were_read_is_not_expected() {
    let fixture = Fixture::new();
    let paths = fixture.paths();
    assert_eq!(paths.distrust, None);
    let path = fixture.file(".pi/extensions/a.ts", "export default () => 1");
    assert!(!is_expected(&paths, &path));
    note_own_change(&path);
    recheck(&paths, &paths.cwd);
    assert!(is_expected(&paths, &path));
}

#[test]
fn answers_for_the_session_record_nothing() {
    let fixture = Fixture::with_extension();
    answer(&fixture.paths(), TrustAnswer::TrustSession).unwrap();
    assert_eq!(fixture.distrust(), None);
    fixture.file(".pi/extensions/a.ts", "2");
    assert_eq!(fixture.changes().len(), 1);
    answer(&fixture.paths(), TrustAnswer::DenySession).unwrap();
    assert_eq!(
        fixture.distrust(),
        Some(Distrust::Declined {
            by_extension: false
        })
    );
    assert!(!fixture.trust_file().exists());
}

#[test]
fn trust_in_changes_is_given_once() {
    let fixture = Fixture::with_extension();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    fixture.file(".pi/extensions/a.ts", "2");
    assert_eq!(fixture.changes().len(), 1);
    answer(&fixture.paths(), TrustAnswer::TrustChanges).unwrap();
    fixture.file(".pi/extensions/a.ts", "3");
    assert_eq!(fixture.distrust(), None);
}

#[test]
fn an_answer_is_about_the_contents_that_were_shown() {
    let fixture = Fixture::with_extension();
    let requested = question(&fixture.paths()).unwrap();
    assert_eq!(requested.reason, TrustReason::Unanswered);
    let path = fixture.file(".pi/extensions/a.ts", "swapped");
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert!(check(&path, b"swapped").is_err());
    assert!(check(&path, b"export default () => {}").is_ok());
    let added = fixture.file(".pi/extensions/new.ts", "x");
    assert!(check(&added, b"x").is_err());
    assert!(!is_expected(&fixture.paths(), &added));
    assert_eq!(fixture.changes().len(), 2);
    // The text that was trusted was never seen.
    let requested = question(&fixture.paths()).unwrap();
    let diff = requested.diff().unwrap();
    assert!(diff.contains("a.ts (no text to compare)"), "{diff}");
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    fixture.file(".pi/extensions/a.ts", "swapped\nagain");
    recheck(&fixture.paths(), &fixture.project());
    let requested = question(&fixture.paths()).unwrap();
    assert_eq!(requested.reason, TrustReason::Changed);
    let diff = requested.diff().unwrap();
    assert!(
        diff.contains("-swapped") && diff.contains("+again"),
        "{diff}"
    );
}

#[test]
fn a_damaged_record_asks_again() {
    let fixture = Fixture::with_extension();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    let folder = fixture.dir.path().join("home/.pi/agent/trust");
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_file() {
            fs::write(entry.path(), "{").unwrap();
        }
    }
    assert_eq!(fixture.changes().len(), 1);
}

/// An earlier build wrote records of version 1, which have the files in the first line.
#[test]
fn a_record_of_another_version_asks_again() {
    let fixture = Fixture::with_extension();
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert_eq!(fixture.distrust(), None);
    let folder = fixture.dir.path().join("home/.pi/agent/trust");
    let mut entries = fs::read_dir(folder).unwrap().flatten();
    let record = entries.find(|entry| entry.path().is_file()).unwrap().path();
    let text = fs::read_to_string(&record).unwrap();
    let (first, lines) = text.split_once('\n').unwrap();
    let header: serde_json::Value = serde_json::from_str(first).unwrap();
    let files: serde_json::Map<String, serde_json::Value> = lines
        .lines()
        .map(|line| {
            let (key, file) = line.split_once(' ').unwrap();
            let key = serde_json::from_str(key).unwrap();
            (key, serde_json::from_str(file).unwrap())
        })
        .collect();
    assert!(!files.is_empty());
    for version in ["0", "1", "3", "-1", "4294967296", "\"2\"", "null"] {
        let mut header = header.clone();
        header["version"] = serde_json::from_str(version).unwrap();
        header["trustsChanges"] = true.into();
        fs::write(&record, format!("{header}\n{lines}")).unwrap();
        assert_eq!(fixture.changes().len(), 1, "{version}");
        header["files"] = files.clone().into();
        header.as_object_mut().unwrap().remove("length");
        fs::write(&record, header.to_string()).unwrap();
        assert_eq!(fixture.changes().len(), 1, "{version}");
    }
    answer(&fixture.paths(), TrustAnswer::Trust).unwrap();
    assert_eq!(fixture.distrust(), None);
}
