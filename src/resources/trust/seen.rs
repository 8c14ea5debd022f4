//! Files that are new or changed since the last session without a question about them: those of the
//! user's own extensions, and those of a project whose changes are trusted. They are listed once.

use super::difference::{Change, Difference};
use super::file_set::{FileRole, ProjectFolder};
use super::record::Record;
use super::with_decision_of;
use crate::paths::Paths;

/// Lists files that can run or change the system prompt and that are new or changed since the last
/// call, which is in the last session.
pub fn changed_since_last_session(paths: &Paths) -> Vec<String> {
    let mut lists = Vec::new();
    let own = ProjectFolder::of_user(&paths.home, &paths.agent_dir);
    if let Some(difference) = changes(paths, &own, None) {
        lists.push(format!(
            "New or changed extensions since the last session, and loaded (from {} and what your \
             settings name): {}",
            own.path.display(),
            difference.summary(&own.path)
        ));
    }
    // Otherwise the question about the project has listed the changes, or nothing is used.
    let project = with_decision_of(paths, |decision| {
        let is_unbound = decision.distrust.is_none() && decision.files.is_none();
        (is_unbound && !decision.is_empty).then(|| decision.folder.clone())
    });
    if let Some(project) = project {
        let answered = Record::load(&paths.agent_dir, &project.path);
        if let Some(difference) = changes(paths, &project, answered) {
            lists.push(format!(
                "New or changed in {} since the last session, and used: {}",
                project.path.display(),
                difference.summary(&project.path)
            ));
        }
    }
    lists
}

/// Compares a folder with the last session, or with the user's answer if that is later, and records
/// it for the next session.
fn changes(paths: &Paths, folder: &ProjectFolder, answered: Option<Record>) -> Option<Difference> {
    let seen = Record::load_seen(&paths.agent_dir, &folder.path);
    if (seen.as_ref()).is_some_and(|seen| folder.is_unchanged_since(seen)) {
        return None;
    }
    let files = folder.read().ok()?;
    let both = seen.into_iter().chain(answered);
    let before = both.max_by_key(|record| record.recorded_at);
    if let Err(error) = Record::new(folder, &files, false).save_seen(&paths.agent_dir) {
        tracing::warn!("the state of extensions cannot be recorded: {error}");
    }
    let mut difference = Difference::between(&folder.path, before?.files.all(), &files);
    difference
        .files
        .retain(|file| file.change != Change::Removed && file.role != FileRole::Link);
    (!difference.is_empty()).then_some(difference)
}
