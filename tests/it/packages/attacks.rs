//! Archives and servers that try to do more than to bring a package.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tar::EntryType;

use super::install::{borrowed, contents, pi};
use crate::support::Home;
use crate::support::registry::{Registry, commit};

/// Packs entries of any name. A link's target is its data.
fn packed(entries: &[(EntryType, String, Vec<u8>)]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for (kind, name, data) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
        if is_link {
            header.set_link_name_literal(data).unwrap();
        }
        header.set_size(if is_link { 0 } else { data.len() as u64 });
        header.set_cksum();
        encoder.write_all(header.as_bytes()).unwrap();
        if !is_link {
            encoder.write_all(data).unwrap();
            let padding = data.len().next_multiple_of(512) - data.len();
            encoder.write_all(&vec![0; padding]).unwrap();
        }
    }
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

fn file(name: &str, data: &[u8]) -> (EntryType, String, Vec<u8>) {
    (EntryType::Regular, name.to_owned(), data.to_vec())
}

fn manifest() -> (EntryType, String, Vec<u8>) {
    file(
        "package/package.json",
        br#"{"name": "evil", "version": "1.0.0"}"#,
    )
}

/// Names below a folder, as a whole.
fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(current) = pending.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn an_archive_that_leads_out_is_not_installed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    home.file("keep", "mine");
    let before = listing(&home.cwd());
    let absolute = home.cwd().join("absolute").display().to_string();
    for name in [
        "package/../../../../../out",
        "../../out",
        &absolute,
        "package/a/../../../out",
    ] {
        let archive = packed(&[manifest(), file(name, b"evil")]);
        registry.publish_archive("evil", "1.0.0", archive);
        let error = pi(&registry, &home, &["install", "npm:evil"])
            .await
            .failed(1);
        assert!(
            error.contains("leads out of the package"),
            "{name}: {error}"
        );
        assert_eq!(listing(&home.cwd()), before, "{name}");
        assert!(!home.agent_dir().join("settings.json").exists());
        assert!(!Registry::user_root(&home).join("evil").exists());
        let out = listing(&home.agent_dir())
            .into_iter()
            .find(|it| it.ends_with("out"));
        assert_eq!(out, None, "{name}");
    }
}

#[tokio::test]
async fn links_of_an_archive_are_left_out() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let secret = home.file("secret", "mine");
    let target = secret.to_str().unwrap().as_bytes().to_vec();
    let above = home.cwd().to_str().unwrap().as_bytes().to_vec();
    let archive = packed(&[
        manifest(),
        (EntryType::Symlink, "package/soft".into(), target.clone()),
        (EntryType::Link, "package/hard".into(), target),
        (EntryType::Symlink, "package/folder".into(), above),
        file("package/folder/secret", b"evil"),
        file("package/soft2", b"fine"),
    ]);
    registry.publish_archive("evil", "1.0.0", archive);
    let output = pi(&registry, &home, &["install", "npm:evil"]).await.ok();
    assert!(
        output.contains("evil@1.0.0: 3 links and special files"),
        "{output}"
    );
    let folder = Registry::user_root(&home).join("evil");
    for gone in ["soft", "hard"] {
        assert!(fs::symlink_metadata(folder.join(gone)).is_err(), "{gone}");
    }
    assert!(
        !fs::symlink_metadata(folder.join("folder"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(fs::read_to_string(secret).unwrap(), "mine");
}

#[tokio::test]
async fn too_many_files_and_bombs_are_refused() {
    let registry = Registry::start().await;
    let home = Home::bare();
    // Links count as files, and cost no time because they are not unpacked.
    let link = |n| {
        (
            EntryType::Symlink,
            format!("package/link{n}"),
            b"x".to_vec(),
        )
    };
    let files = (0..100).map(|n| file(&format!("package/{n}"), b""));
    let many = files.chain((0..60_000).map(link));
    let many = packed(&[manifest()].into_iter().chain(many).collect::<Vec<_>>());
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..8].copy_from_slice(b"package/");
    header.as_old_mut().name[8..12].copy_from_slice(b"zero");
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(8 << 30);
    header.set_cksum();
    // A file of gzip may have several parts, so that the zeros are packed once.
    let part = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut bomb = part(header.as_bytes());
    // Less than the header says is enough: reading stops long before.
    bomb.extend(part(&vec![0; 1 << 20]).repeat(40));
    for (archive, expected) in [(many, "more than 60000 files"), (bomb, "fill a disk")] {
        registry.publish_archive("evil", "1.0.0", archive);
        let error = pi(&registry, &home, &["install", "npm:evil"])
            .await
            .failed(1);
        assert!(error.contains(expected), "{error}");
        assert!(listing(&home.agent_dir()).len() < 20, "nothing is left");
    }
}

#[tokio::test]
async fn an_archive_with_another_hash_is_not_installed() {
    let registry = Registry::start().await;
    let home = Home::bare();
    registry.publish("tool", "1.0.0", &borrowed(&contents("tool")));
    for (integrity, expected) in [
        (json!({"integrity": "sha512-AAAA"}), "its hash is sha512-"),
        (json!({"integrity": "md5-AAAA"}), "no known form"),
        (
            json!({"shasum": "62afbee2ffab5e0db139450767a6125cbea50fa2"}),
            "its hash is sha1-",
        ),
    ] {
        registry.change("tool", "1.0.0", |it| {
            let tarball = it.manifest["dist"]["tarball"].clone();
            it.manifest["dist"] = integrity.clone();
            it.manifest["dist"]["tarball"] = tarball;
        });
        let error = pi(&registry, &home, &["install", "npm:tool"])
            .await
            .failed(1);
        assert!(error.contains(expected), "{integrity}: {error}");
        assert!(!Registry::user_root(&home).join("tool").exists());
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_carries_no_token() {
    let (registry, other, home) = (
        Registry::start().await,
        Registry::start().await,
        Home::bare(),
    );
    registry.publish("tool", "1.0.0", &borrowed(&contents("tool")));
    let mut archive = Vec::new();
    registry.change("tool", "1.0.0", |it| archive = it.archive.clone());
    other.publish_archive("tool", "1.0.0", archive);
    registry.require("Bearer s3cret");
    let away = format!("{}tool/-/1.0.0", other.url());
    registry.redirect("/tool/-/1.0.0", &away);
    let user_home = home.agent_dir().ancestors().nth(2).unwrap().to_owned();
    let text = format!("//{}/:_authToken=s3cret\n", registry.address());
    fs::write(user_home.join(".npmrc"), text).unwrap();
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    let own = registry.credentials();
    assert!(
        own.iter().all(|it| it.as_deref() == Some("Bearer s3cret")),
        "{own:?}"
    );
    assert_eq!(other.credentials(), [None]);
    // A registry that names another host for its archives sends no token there either.
    registry.change("tool", "1.0.0", |it| {
        it.manifest["dist"]["tarball"] = json!(away)
    });
    pi(&registry, &home, &["install", "npm:tool"]).await.ok();
    assert_eq!(other.credentials(), [None, None]);
}

#[tokio::test]
async fn names_and_links_of_a_repository_do_not_lead_out() {
    let registry = Registry::start().await;
    let home = Home::bare();
    let root = home.cwd().join("repositories");
    super::install::serve_git(&home, &root);
    registry.publish("dep", "1.0.0", &borrowed(&contents("dep")));
    let outside = home.file("outside/keep", "mine");
    let outside = outside.parent().unwrap().to_owned();
    for (name, manifest) in [
        (
            "names",
            json!({"dependencies": {"../../../outside": "npm:dep@1"}}),
        ),
        (
            "file",
            json!({"dependencies": {"x": "file:../../../../outside"}}),
        ),
        (
            "workspace",
            json!({"workspaces": ["../../outside"], "dependencies": {"x": "workspace:*"}}),
        ),
        ("git", json!({"dependencies": {"x": "git+file:///etc"}})),
    ] {
        let manifest = manifest.to_string();
        commit(&root.join("u").join(name), &[("package.json", &manifest)]);
        let source = format!("git:git.test/u/{name}");
        pi(&registry, &home, &["install", &source]).await.failed(1);
        assert_eq!(listing(&outside).len(), 1, "{name}");
    }
    let linked = root.join("u/linked");
    fs::create_dir_all(&linked).unwrap();
    symlink(&outside, linked.join("node_modules")).unwrap();
    let manifest = json!({"dependencies": {"dep": "1"}}).to_string();
    commit(&linked, &[("package.json", &manifest)]);
    pi(&registry, &home, &["install", "git:git.test/u/linked"])
        .await
        .ok();
    assert_eq!(listing(&outside).len(), 1);
    let dep = home
        .agent_dir()
        .join("git/git.test/u/linked/node_modules/dep/package.json");
    assert!(dep.exists());

    // A project that sends its packages to another place.
    symlink(&outside, home.cwd().join("link")).unwrap();
    fs::create_dir_all(home.cwd().join(".pi")).unwrap();
    symlink(&outside, home.cwd().join(".pi/npm")).unwrap();
    let error = pi(&registry, &home, &["install", "-l", "npm:dep"])
        .await
        .failed(1);
    assert!(error.contains(".pi/npm is a link"), "{error}");
    assert_eq!(listing(&outside).len(), 1);
}
