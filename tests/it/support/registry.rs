//! A registry of npm packages on loopback, as small as npm accepts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command as Program;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use super::Home;

/// Archives by version.
type Archives = BTreeMap<String, Vec<u8>>;

#[derive(Clone)]
pub struct Registry {
    address: String,
    packages: Arc<Mutex<BTreeMap<String, Archives>>>,
    requests: Arc<Mutex<Vec<String>>>,
    /// Archives that never arrive.
    stalled: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = Self {
            address: listener.local_addr().unwrap().to_string(),
            packages: Arc::default(),
            requests: Arc::default(),
            stalled: Arc::default(),
        };
        let server = registry.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    // A client that hangs up has received what it wanted.
                    let _ = server.serve(stream).await;
                });
            }
        });
        registry
    }

    /// Publishes a version; the last is the latest.
    pub fn publish(&self, name: &str, version: &str, files: &[(&str, &str)]) {
        let manifest = json!({"name": name, "version": version}).to_string();
        let folder = tempfile::tempdir().unwrap();
        let has_manifest = files.iter().any(|(path, _)| *path == "package.json");
        let manifest = [("package.json", manifest.as_str())];
        let manifest = manifest.iter().filter(|_| !has_manifest);
        for (path, text) in files.iter().chain(manifest) {
            let path = folder.path().join("package").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let archive = folder.path().join("archive.tgz");
        let status = Program::new("tar")
            .args(["-czf".as_ref(), archive.as_os_str(), "-C".as_ref()])
            .args([folder.path().as_os_str(), "package".as_ref()])
            .status()
            .expect("tar is installed");
        assert!(status.success());
        self.publish_archive(name, version, fs::read(archive).unwrap());
    }

    /// Publishes a version with an archive of arbitrary bytes.
    pub fn publish_archive(&self, name: &str, version: &str, archive: Vec<u8>) {
        let mut packages = self.packages.lock().unwrap();
        let versions = packages.entry(name.to_owned()).or_default();
        versions.insert(version.to_owned(), archive);
    }

    /// From now on, requests for the archive of a version never end.
    pub fn stall(&self, name: &str, version: &str) {
        let mut stalled = self.stalled.lock().unwrap();
        stalled.push(format!("/{name}/-/{version}"));
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// A program that uses this registry, online, and keeps all data of npm in folders of the home.
    pub fn command(&self, home: &Home, program: &str) -> Command {
        let mut command = home.command(program);
        let npm = home.agent_dir().with_file_name("npm");
        command
            .env_remove("PI_OFFLINE")
            .env("npm_config_registry", format!("http://{}/", self.address))
            .env("npm_config_prefix", &npm)
            .env("npm_config_cache", npm.join("cache"))
            .env("npm_config_fetch_retries", "0")
            .env("npm_config_audit", "false")
            .env("npm_config_fund", "false")
            .env("npm_config_update_notifier", "false");
        command
    }

    /// The folder in which npm installs the user's packages.
    pub fn global_root(home: &Home) -> std::path::PathBuf {
        home.agent_dir()
            .with_file_name("npm")
            .join("lib/node_modules")
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut header = String::new();
        while stream.read_line(&mut header).await? > 2 {
            header.clear();
        }
        self.requests.lock().unwrap().push(target.clone());
        let is_stalled = self.stalled.lock().unwrap().contains(&target);
        if is_stalled {
            std::future::pending::<()>().await;
        }
        let (status, kind, body) = self.answer(&target);
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await
    }

    fn answer(&self, target: &str) -> (&'static str, &'static str, Vec<u8>) {
        let path = target
            .trim_start_matches('/')
            .replace("%2f", "/")
            .replace("%2F", "/");
        let packages = self.packages.lock().unwrap();
        if let Some((name, version)) = path.split_once("/-/")
            && let Some(archive) = packages
                .get(name)
                .and_then(|versions| versions.get(version))
        {
            return ("200 OK", "application/octet-stream", archive.clone());
        }
        let Some(versions) = packages.get(&path) else {
            return (
                "404 Not Found",
                "application/json",
                b"{\"error\": \"not found\"}".to_vec(),
            );
        };
        let described = versions.keys().map(|version| {
            let tarball = format!("http://{}/{path}/-/{version}", self.address);
            let dist = json!({"tarball": tarball});
            let version_of = json!({"name": path, "version": version, "dist": dist});
            (version.clone(), version_of)
        });
        let described: serde_json::Map<String, Value> = described.collect();
        let latest = versions.keys().next_back();
        let body = json!({"name": path, "dist-tags": {"latest": latest}, "versions": described});
        ("200 OK", "application/json", body.to_string().into_bytes())
    }
}

/// Creates a repository with one commit of these files; each further call adds a commit.
pub fn commit(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    if !folder.join(".git").exists() {
        git(folder, &["init", "--quiet", "--initial-branch=main"]);
    }
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message", "more"]);
}

pub fn git(folder: &Path, arguments: &[&str]) {
    let output = Program::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
}
