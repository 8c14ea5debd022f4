//! Passes events to the client, and gives clients that show the changes of an `edit` or a
//! `write` the time to read the file first.
//!
//! Such clients read the file when they see `tool_execution_start`. A call that runs at once has
//! often changed the file before the client has read the line. So the line is flushed, and the
//! call waits for a moment. The capability `immediateFileChanges` turns that off.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::output::Output;
use pi_agent::event::Event;
use pi_app::EventSink;

/// Delay between the line in the pipe and the change of the file. It is the shortest with which
/// pi-acp 0.0.34 read 60 of 60 files right on two busy cores (docs/rpc.md).
const FILE_READ_DELAY: Duration = Duration::from_millis(5);
/// How long the line may take to get into the pipe. A client that reads nothing does not read
/// the file either.
const LINE_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes events to the client.
pub struct ClientEvents(pub Output);

#[async_trait]
impl EventSink for ClientEvents {
    async fn send(&self, event: Arc<Event>) {
        self.0.send(event).await;
    }

    async fn before_files_change(&self) {
        let flushed = tokio::time::timeout(LINE_FLUSH_TIMEOUT, self.0.flush_unlimited()).await;
        if let Ok(Some(capabilities)) = flushed
            && !capabilities.immediate_file_changes
        {
            tokio::time::sleep(FILE_READ_DELAY).await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;
    use crate::wire::Capabilities;

    fn start(stdout: io::PipeWriter) -> (Output, oneshot::Receiver<io::Error>) {
        let stdout = js_runtime::Output::new(OwnedFd::from(stdout).into()).unwrap();
        Output::start(stdout, Capabilities::default()).unwrap()
    }

    #[tokio::test]
    async fn a_file_changes_only_after_its_event_was_flushed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (output, _closed) = start(writer);
        let events = ClientEvents(output);
        let start = Event::ToolExecutionStart {
            tool_call_id: "1".into(),
            tool_name: "edit".into(),
            args: json!({}),
        };
        let line = serde_json::to_string(&start).unwrap() + "\n";
        let begun = Instant::now();
        events.send(Arc::new(start)).await;
        events.before_files_change().await;
        assert!(begun.elapsed() >= FILE_READ_DELAY);
        // The line is in the pipe already, so this does not wait.
        let mut read = vec![0; line.len()];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), line);
    }

    #[tokio::test]
    async fn a_closed_client_causes_no_delay() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let (output, closed) = start(writer);
        let events = ClientEvents(output);
        events.send(Arc::new(Event::AgentStart)).await;
        closed.await.unwrap();
        events.before_files_change().await;
    }
}
