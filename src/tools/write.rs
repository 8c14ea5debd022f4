//! The `write` tool: writes a whole file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::arguments;
use super::blocking;
use super::files::mutation_queue::lock_file;
use super::files::os_error;
use super::files::paths;
use super::files::replace_file::replace_file;
use super::remote::{RemoteAccess, RemoteFiles};
use super::tool::{Queueing, Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::stream::ToolSpec;
use pi_base::utf16;

pub struct WriteTool {
    spec: ToolSpec,
    guidelines: Vec<String>,
    cwd: PathBuf,
    remote: Option<Arc<dyn RemoteFiles>>,
}

#[derive(Deserialize)]
struct Args {
    path: String,
    content: String,
}

impl WriteTool {
    pub fn new(cwd: PathBuf) -> Self {
        let spec = ToolSpec {
            name: "write".to_owned(),
            description: "Write content to a file. A file that does not exist is created, one \
                          that does is overwritten; missing parent directories are created too."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file to write (relative or absolute path)",
                    },
                    "content": {
                        "type": "string",
                        "description": "What to write to the file",
                    },
                },
                "required": ["path", "content"],
            }),
        };
        let guidelines =
            vec!["Use write only for new files or to rewrite a file completely.".to_owned()];
        Self {
            spec,
            guidelines,
            cwd,
            remote: None,
        }
    }

    /// Writes files through `operations`, for example on another machine.
    pub fn with_operations(mut self, operations: Arc<dyn RemoteFiles>) -> Self {
        self.remote = Some(operations);
        self
    }
}

#[async_trait]
impl Tool for WriteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Create files or overwrite them")
    }

    fn prompt_guidelines(&self) -> &[String] {
        &self.guidelines
    }

    fn queueing(&self) -> Queueing {
        Queueing::AtOnce
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let Args { path, content } = arguments::parse("write", call.args)?;
        let file = paths::resolve(&path, &self.cwd);
        let guard = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(ToolError::aborted()),
            guard = lock_file(&file) => guard,
        };
        let cancel = call.cancel;
        let remote = self.remote.as_ref();
        let remote = remote.map(|operations| RemoteAccess::new(operations, &cancel));
        // The work is not abandoned on an abort, so that the result describes what happened.
        blocking(move || {
            let _guard = guard;
            if cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
            match remote {
                Some(remote) => write_remote(&remote, &file, &content)?,
                None => write_local(&file, &content)?,
            }
            // The original counts UTF-16 units and calls them bytes.
            let units = utf16::len(&content);
            Ok(ToolOutput::text(format!(
                "Successfully wrote {units} bytes to {path}"
            )))
        })
        .await
    }
}

fn write_local(file: &Path, content: &str) -> Result<(), ToolError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| os_error::describe(&error, "mkdir", Some(folder)))?;
    }
    replace_file(file, content.as_bytes())
        .map_err(|error| os_error::describe(&error, "open", Some(file)))
}

fn write_remote(remote: &RemoteAccess, file: &Path, content: &str) -> Result<(), ToolError> {
    if let Some(folder) = file.parent() {
        remote.call("mkdir", json!([folder.to_string_lossy()]))?;
    }
    remote.call("writeFile", json!([file.to_string_lossy(), content]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[tokio::test]
    async fn folders_are_made_and_files_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let tool = WriteTool::new(folder.path().to_owned());
        for content in ["h\u{e9}llo \u{1f600}\r\n", ""] {
            let args = json!({"path": "@a/b/c.txt", "content": content});
            let units = content.encode_utf16().count();
            assert_eq!(
                run(&tool, args).await,
                Ok(ToolOutput::text(format!(
                    "Successfully wrote {units} bytes to @a/b/c.txt"
                )))
            );
            let file = folder.path().join("a/b/c.txt");
            assert_eq!(std::fs::read_to_string(file).unwrap(), content);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn failures_name_the_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let tool = WriteTool::new(folder.path().to_owned());
        let place = folder.path().display();
        let cases = [
            (
                ".",
                format!("EISDIR: illegal operation on a directory, open '{place}'"),
            ),
            (
                "file/x/y",
                format!("ENOTDIR: not a directory, mkdir '{place}/file/x'"),
            ),
        ];
        for (path, expected) in cases {
            let args = json!({"path": path, "content": "x"});
            assert_eq!(run(&tool, args).await, Err(ToolError(expected)));
        }
    }

    #[tokio::test]
    async fn an_abort_while_waiting_for_the_turn_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let tool = WriteTool::new(folder.path().to_owned());
        let _held = lock_file(&file).await;
        let call = crate::testing::invocation(json!({"path": "a", "content": "x"}));
        let cancel = call.cancel.clone();
        let (result, ()) = tokio::join!(tool.execute(call), async { cancel.cancel() });
        assert_eq!(result, Err(ToolError::aborted()));
        assert!(!file.exists());
    }
}
