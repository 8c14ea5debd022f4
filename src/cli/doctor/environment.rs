//! Checks the environment: folders that pi writes to, locks, and remains of earlier versions.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Doctor;
use pi_base::file_lock::FileLock;
use pi_resources::migrations::old_folders;
use pi_resources::paths::expand_tilde;
use pi_session::default_session_dir;

pub(super) fn folders(doctor: &mut Doctor) {
    let paths = doctor.paths.clone();
    check_writable(
        doctor,
        &paths.agent_dir,
        "Settings and keys cannot be stored there",
    );
    let sessions = match &doctor.settings.values().session_dir {
        Some(dir) => paths.cwd.join(expand_tilde(dir, &paths.home)),
        None => default_session_dir(&paths.agent_dir, &paths.cwd),
    };
    check_writable(doctor, &sessions, "Sessions cannot be stored there");
    if env::var_os("PI_CODING_AGENT_DIR").is_some() && !paths.agent_dir.exists() {
        doctor.note(
            &paths.agent_dir,
            "PI_CODING_AGENT_DIR names a folder that does not exist yet",
            "pi makes it when it has something to store",
        );
    }
    doctor.add_diagnostics(old_folders(&paths), "Move what is in it, then remove it");
    let oauth = paths.agent_dir.join("oauth.json");
    if oauth.exists() && paths.auth().exists() {
        doctor.note(
            &oauth,
            "It is from an earlier version and not read, because there is an auth.json",
            "Remove it when auth.json has what is needed",
        );
    }
}

fn check_writable(doctor: &mut Doctor, dir: &Path, consequence: &str) {
    // A missing folder is created when needed, if its parent is writable.
    let existing = dir.ancestors().find(|dir| dir.exists());
    let Some(existing) = existing else { return };
    if !existing.is_dir() {
        let message = format!("{} is no folder. {consequence}", existing.display());
        doctor.error(dir, message, "Move it away");
    } else if let Err(error) = tempfile::tempfile_in(existing) {
        let message = format!(
            "{} is not writable: {error}. {consequence}",
            existing.display()
        );
        doctor.error(
            dir,
            message,
            "Make it writable for you, and check for space on the disk",
        );
    }
}

pub(super) fn locks(doctor: &mut Doctor) {
    let paths = doctor.paths.clone();
    let files = [
        paths.global_settings(),
        paths.project_settings(),
        paths.auth(),
        paths.keybindings(),
    ];
    for file in files {
        let mut name = file.into_os_string();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let Some(age) = age(&lock) else { continue };
        if FileLock::is_held_directory(&lock) {
            doctor.note(
                &lock,
                "Another process is writing",
                "Look again in some seconds",
            );
        } else {
            doctor.warning(
                &lock,
                format!(
                    "Its owner has died, {} s ago; the next writer removes it",
                    age.as_secs()
                ),
                format!("rmdir {}", lock.display()),
            );
        }
    }
    let packages = paths.agent_dir.join("cache").join("packages.lock");
    if let Ok(file) = File::open(&packages)
        && let Err(TryLockError::WouldBlock) = file.try_lock()
    {
        doctor.note(
            &packages,
            "Another pi is installing packages",
            "It ends by itself",
        );
    }
}

fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(modified.elapsed().unwrap_or_default())
}
