//! Gives clients that show what an `edit` or a `write` changes the time to read the file first.
//!
//! Such clients read the file when they see `tool_execution_start`. A call that runs at once has
//! often changed the file before the client has read the line. So the line is flushed, and the
//! call waits for a moment. The capability `immediateFileChanges` turns that off.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::agent::event::Event;
use crate::app::EventSink;
use crate::modes::output::Output;

/// From the line in the pipe to the change of the file. The least with which pi-acp 0.0.34 read
/// 60 of 60 files right on two busy cores (docs/rpc.md).
const TIME_TO_READ: Duration = Duration::from_millis(5);
/// For the line to get into the pipe: a client that reads nothing does not read the file either.
const FULL_PIPE: Duration = Duration::from_secs(1);

/// Events on their way to the client.
pub struct Events(pub Output);

#[async_trait]
impl EventSink for Events {
    async fn send(&self, event: Arc<Event>) {
        self.0.send(event).await;
    }

    async fn before_files_change(&self) {
        let flushed = tokio::time::timeout(FULL_PIPE, self.0.flushed()).await;
        if let Ok(Some(agreed)) = flushed
            && !agreed.immediate_file_changes
        {
            tokio::time::sleep(TIME_TO_READ).await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{self, Read};
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::modes::wire::Agreed;

    #[tokio::test]
    async fn the_line_is_in_the_pipe_before_the_time_to_read_begins() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (output, _closed) = Output::start(writer, Agreed::default()).unwrap();
        let events = Events(output);
        let start = Event::ToolExecutionStart {
            tool_call_id: "1".into(),
            tool_name: "edit".into(),
            args: json!({}),
        };
        let line = serde_json::to_string(&start).unwrap() + "\n";
        let begun = Instant::now();
        events.send(Arc::new(start)).await;
        events.before_files_change().await;
        assert!(begun.elapsed() >= TIME_TO_READ);
        // The line is there already, so this does not wait.
        let mut read = vec![0; line.len()];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), line);
    }

    #[tokio::test]
    async fn a_client_that_is_gone_is_not_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let (output, closed) = Output::start(writer, Agreed::default()).unwrap();
        let events = Events(output);
        events.send(Arc::new(Event::AgentStart)).await;
        closed.await.unwrap();
        events.before_files_change().await;
    }
}
