//! The system on which packages run, in the words of npm's `os`, `cpu` and `libc`.

use deno_npm::NpmSystemInfo;
use serde::{Deserialize, Serialize};

/// The systems that a package allows; an empty list allows all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Systems {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libc: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct System {
    os: String,
    cpu: String,
    /// `glibc` or `musl`; `None` where the difference does not exist.
    libc: Option<&'static str>,
}

impl System {
    pub(crate) fn current() -> Self {
        let info = NpmSystemInfo::default();
        let musl = std::fs::read_dir("/lib").ok().is_some_and(|files| {
            let mut names = files.flatten().map(|entry| entry.file_name());
            names.any(|name| name.to_string_lossy().starts_with("ld-musl-"))
        });
        let glibc = [
            "/lib64",
            "/lib",
            "/lib/x86_64-linux-gnu",
            "/lib/aarch64-linux-gnu",
        ]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|files| files.flatten())
        .any(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux"));
        let libc = (info.os.as_str() == "linux").then_some(match musl && !glibc {
            true => "musl",
            false => "glibc",
        });
        Self {
            os: info.os.to_string(),
            cpu: info.cpu.to_string(),
            libc,
        }
    }

    pub(crate) fn allows(&self, systems: &Systems) -> bool {
        let libc = match self.libc {
            Some(libc) => matches(&systems.libc, libc),
            None => systems.libc.is_empty(),
        };
        matches(&systems.os, &self.os) && matches(&systems.cpu, &self.cpu) && libc
    }

    /// Describes the system for an error.
    pub(crate) fn describe(&self) -> String {
        let libc = self.libc.map(|libc| format!(" {libc}"));
        format!("{} {}{}", self.os, self.cpu, libc.unwrap_or_default())
    }
}

impl Systems {
    pub(crate) fn describe(&self) -> String {
        let lists = [&self.os, &self.cpu, &self.libc];
        let lists = lists.iter().filter(|list| !list.is_empty());
        lists
            .map(|list| list.join("|"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns whether a list of npm allows the name: `!name` excludes, other entries include.
fn matches(list: &[String], name: &str) -> bool {
    if list
        .iter()
        .any(|entry| entry.strip_prefix('!') == Some(name))
    {
        return false;
    }
    let mut included = list
        .iter()
        .filter(|entry| !entry.starts_with('!'))
        .peekable();
    included.peek().is_none() || included.any(|entry| entry == name || entry == "any")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn systems(os: &[&str], cpu: &[&str], libc: &[&str]) -> Systems {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Systems {
            os: owned(os),
            cpu: owned(cpu),
            libc: owned(libc),
        }
    }

    #[test]
    fn lists_include_and_exclude() {
        let linux = System {
            os: "linux".into(),
            cpu: "x64".into(),
            libc: Some("glibc"),
        };
        for (allowed, list) in [
            (true, systems(&[], &[], &[])),
            (true, systems(&["linux", "darwin"], &["x64"], &["glibc"])),
            (false, systems(&["darwin"], &[], &[])),
            (false, systems(&[], &["arm64"], &[])),
            (false, systems(&["linux"], &[], &["musl"])),
            (true, systems(&["!win32"], &[], &[])),
            (false, systems(&["!linux"], &[], &[])),
        ] {
            assert_eq!(linux.allows(&list), allowed, "{list:?}");
        }
    }
}
