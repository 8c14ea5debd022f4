//! Runs git for dependencies that are repositories. Hooks of the repository never run.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use deno_semver::{Version, VersionReq};
use tokio::process::Command;

use crate::error::NpmError;

const TIMEOUT: Duration = Duration::from_secs(300);
/// Protocols that git may use. `ext` would run a program.
const PROTOCOLS: &str = "https:http:ssh:git:file";
/// Characters of a failed command's output that are reported.
const MAX_REPORTED: usize = 600;

/// Clones a repository, checks out the reference or the default branch, and returns its commit.
pub(crate) async fn clone(
    url: &str,
    reference: Option<&str>,
    into: &Path,
) -> Result<String, NpmError> {
    let reference = match reference.and_then(|it| it.strip_prefix("semver:")) {
        Some(range) => Some(tag_of(url, range).await?),
        None => reference.map(str::to_owned),
    };
    let folder = into.to_string_lossy();
    let parent = into.parent().unwrap_or(into);
    run(&["clone", "--quiet", "--", url, &folder], parent).await?;
    if let Some(reference) = &reference {
        run(&["checkout", "--quiet", "--detach", reference], into).await?;
    }
    let commit = run(&["rev-parse", "--verify", "HEAD"], into).await?;
    Ok(commit.trim().to_owned())
}

/// Returns the tag with the highest version in the range.
async fn tag_of(url: &str, range: &str) -> Result<String, NpmError> {
    let failed = |why: String| NpmError::Git {
        command: format!("ls-remote {url}"),
        why,
    };
    let wanted = VersionReq::parse_from_npm(range).map_err(|error| failed(error.to_string()))?;
    let here = std::env::temp_dir();
    let tags = run(&["ls-remote", "--tags", "--refs", "--", url], &here).await?;
    let tags = tags.lines().filter_map(|line| {
        let tag = line.split_once("refs/tags/")?.1;
        let version = Version::parse_from_npm(tag.trim_start_matches('v')).ok()?;
        wanted.matches(&version).then(|| (version, tag.to_owned()))
    });
    let newest = tags.max_by(|a, b| a.0.cmp(&b.0));
    newest
        .map(|(_, tag)| tag)
        .ok_or_else(|| failed(format!("no tag is a version in {range}")))
}

async fn run(arguments: &[&str], folder: &Path) -> Result<String, NpmError> {
    let failed = |why: String| NpmError::Git {
        command: arguments.join(" "),
        why,
    };
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
        ])
        .args(["-c", "advice.detachedHead=false"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if std::env::var_os("GIT_SSH_COMMAND").is_none() {
        command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
    }
    let output = tokio::time::timeout(TIMEOUT, command.output())
        .await
        .map_err(|_| failed(format!("it took longer than {} s", TIMEOUT.as_secs())))?
        .map_err(|error| {
            failed(format!(
                "{error}. Dependencies that are repositories need git"
            ))
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let report = String::from_utf8_lossy(&output.stderr);
    let report: String = report.trim().chars().take(MAX_REPORTED).collect();
    Err(failed(match report.as_str() {
        "" => output.status.to_string(),
        report => report.to_owned(),
    }))
}
