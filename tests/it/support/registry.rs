//! A registry of npm packages on loopback, as small as npm accepts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command as Program;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use super::Home;

/// A published version.
#[derive(Clone)]
pub struct Version {
    pub archive: Vec<u8>,
    /// The description in the registry: `package.json` with `dist`.
    pub manifest: Value,
    /// The time of its publication; long ago without one.
    pub published: Option<String>,
}

#[derive(Clone)]
pub struct Registry {
    address: String,
    packages: Arc<Mutex<BTreeMap<String, BTreeMap<String, Version>>>>,
    requests: Arc<Mutex<Vec<String>>>,
    /// The header `Authorization` of each request.
    credentials: Arc<Mutex<Vec<Option<String>>>>,
    /// Requests need this value of `Authorization`.
    required: Arc<Mutex<Option<String>>>,
    /// Answers that lead elsewhere.
    redirects: Arc<Mutex<BTreeMap<String, String>>>,
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
            credentials: Arc::default(),
            required: Arc::default(),
            redirects: Arc::default(),
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
        let given = files.iter().find(|(path, _)| *path == "package.json");
        let text = given.map_or(manifest.as_str(), |(_, text)| text);
        let manifest = [("package.json", text)];
        for (path, text) in files.iter().chain(&manifest) {
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
        let mut manifest: Value = serde_json::from_str(text).unwrap();
        manifest["name"] = json!(name);
        manifest["version"] = json!(version);
        self.change(name, version, |published| {
            manifest["dist"] = published.manifest["dist"].clone();
            published.manifest = manifest;
        });
    }

    /// Publishes a version with an archive of arbitrary bytes.
    pub fn publish_archive(&self, name: &str, version: &str, archive: Vec<u8>) {
        let integrity = format!(
            "sha512-{}",
            BASE64_STANDARD.encode(Sha512::digest(&archive))
        );
        let tarball = format!("{}{name}/-/{version}", self.url());
        let dist = json!({"tarball": tarball, "integrity": integrity});
        let published = Version {
            archive,
            manifest: json!({"name": name, "version": version, "dist": dist}),
            published: None,
        };
        let mut packages = self.packages.lock().unwrap();
        let versions = packages.entry(name.to_owned()).or_default();
        versions.insert(version.to_owned(), published);
    }

    /// Publishes a version whose manifest has these members.
    pub fn publish_with(&self, name: &str, version: &str, members: Value, files: &[(&str, &str)]) {
        let mut manifest = members;
        manifest["name"] = json!(name);
        manifest["version"] = json!(version);
        let manifest = manifest.to_string();
        let mut files = files.to_vec();
        files.push(("package.json", &manifest));
        self.publish(name, version, &files);
    }

    /// Changes a published version.
    pub fn change(&self, name: &str, version: &str, change: impl FnOnce(&mut Version)) {
        let mut packages = self.packages.lock().unwrap();
        let versions = packages.get_mut(name).expect("it is published");
        change(versions.get_mut(version).expect("it is published"));
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on, requests without this value of `Authorization` are refused.
    pub fn require(&self, authorization: &str) {
        *self.required.lock().unwrap() = Some(authorization.to_owned());
    }

    /// Sends requests for a path to another URL.
    pub fn redirect(&self, path: &str, url: &str) {
        let mut redirects = self.redirects.lock().unwrap();
        redirects.insert(path.to_owned(), url.to_owned());
    }

    pub fn credentials(&self) -> Vec<Option<String>> {
        self.credentials.lock().unwrap().clone()
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

    /// The folder in which the user's packages are installed.
    pub fn user_root(home: &Home) -> std::path::PathBuf {
        home.agent_dir().join("npm/node_modules")
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let target = line.split(' ').nth(1).unwrap_or_default();
        // Clients send the whole URL to a proxy.
        let at_proxy = target.strip_prefix("http://");
        let at_proxy = at_proxy.and_then(|it| it.find('/').map(|start| &it[start..]));
        let target = at_proxy.unwrap_or(target).to_owned();
        let mut header = String::new();
        let (mut authorization, mut is_short) = (None, false);
        while stream.read_line(&mut header).await? > 2 {
            let (name, value) = header.split_once(": ").unwrap_or_default();
            match name.to_lowercase().as_str() {
                "authorization" => authorization = Some(value.trim().to_owned()),
                "accept" => is_short = value.contains("install-v1"),
                _ => {}
            }
            header.clear();
        }
        self.credentials.lock().unwrap().push(authorization.clone());
        self.requests.lock().unwrap().push(target.clone());
        let is_stalled = self.stalled.lock().unwrap().contains(&target);
        if is_stalled {
            std::future::pending::<()>().await;
        }
        let required = self.required.lock().unwrap().clone();
        let redirect = self.redirects.lock().unwrap().get(&target).cloned();
        let mut location = String::new();
        let (status, kind, body) = match (required, redirect) {
            (Some(_), _) if authorization != self.required.lock().unwrap().clone() => {
                ("401 Unauthorized", "text/plain", Vec::new())
            }
            (_, Some(url)) => {
                location = format!("Location: {url}\r\n");
                ("302 Found", "text/plain", Vec::new())
            }
            _ => self.answer(&target, is_short),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{location}\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.shutdown().await
    }

    fn answer(&self, target: &str, is_short: bool) -> (&'static str, &'static str, Vec<u8>) {
        let path = target
            .trim_start_matches('/')
            .replace("%2f", "/")
            .replace("%2F", "/");
        let packages = self.packages.lock().unwrap();
        if let Some((name, version)) = path.split_once("/-/")
            && let Some(version) = packages
                .get(name)
                .and_then(|versions| versions.get(version))
        {
            return (
                "200 OK",
                "application/octet-stream",
                version.archive.clone(),
            );
        }
        let Some(versions) = packages.get(&path) else {
            return (
                "404 Not Found",
                "application/json",
                b"{\"error\": \"not found\"}".to_vec(),
            );
        };
        let long_ago = "2020-01-01T00:00:00.000Z";
        let date = |it: &Version| it.published.clone().unwrap_or_else(|| long_ago.to_owned());
        let described = versions.iter();
        let described: serde_json::Map<String, Value> = described
            .map(|(version, it)| (version.clone(), it.manifest.clone()))
            .collect();
        let latest = versions.keys().next_back();
        let mut body =
            json!({"name": path, "dist-tags": {"latest": latest}, "versions": described});
        if is_short {
            body["modified"] = json!(versions.values().map(date).max());
        } else {
            let times = versions.iter();
            let times: serde_json::Map<String, Value> = times
                .map(|(version, it)| (version.clone(), json!(date(it))))
                .collect();
            body["time"] = Value::Object(times);
        }
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
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {printed}");
}
