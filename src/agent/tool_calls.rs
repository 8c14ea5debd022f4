//! Tool calls of one answer: admitted one after the other, run concurrently, finished in the
//! order in which the model made them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::AgentMessage;
use super::event::Event;
use super::run::{RunHooks, ToolOutcome, Transcript};
use super::start_order::{self, StartSlot};
use pi_ai::message::{AssistantMessage, StopReason, ToolCall, ToolResultMessage, now};
use pi_ai::stream::tool_arguments;
use pi_tools::FILE_CHANGING;
use pi_tools::arguments::validate::validate;
use pi_tools::tool::{
    ExecutionMode, PathFilter, Queueing, Tool, ToolError, ToolInvocation, ToolOutput,
};

/// A call that may run.
struct AdmittedCall<'a> {
    call: &'a ToolCall,
    tool: Arc<dyn Tool>,
    args: Value,
    /// See [`ToolInvocation::unreadable`].
    unreadable: Option<PathFilter>,
}

fn find_tool<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    tools.iter().find(|tool| tool.spec().name == name)
}

/// Executes the calls. Returns the results, and whether all of them ask the agent to stop.
pub(super) async fn execute(
    transcript: &mut Transcript<'_>,
    message: &AssistantMessage,
    tools: &[Arc<dyn Tool>],
    cancel: &CancellationToken,
) -> (Vec<Arc<AgentMessage>>, bool) {
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    let truncated = message.stop_reason == StopReason::Length;
    let one_by_one = calls.iter().any(|call| {
        find_tool(tools, &call.name)
            .is_some_and(|tool| tool.execution_mode() == ExecutionMode::Sequential)
    });
    let mut results = Vec::with_capacity(calls.len());
    let mut terminate = !calls.is_empty();
    if one_by_one {
        for call in calls {
            let outcome = match admit(transcript.hooks, call, truncated, tools, cancel).await {
                Ok(admitted) => {
                    let alone = std::slice::from_ref(&admitted);
                    wait_before_files_change(transcript.hooks, alone, cancel).await;
                    let outcome =
                        run(transcript.hooks, &admitted, &StartSlot::default(), cancel).await;
                    apply_after_hook(transcript.hooks, &admitted, outcome, cancel).await
                }
                Err(outcome) => outcome,
            };
            terminate &= outcome.output.terminate;
            let outcome = transcript.hooks.finish_tool_call(call, outcome).await;
            results.push(append_result(transcript, call, outcome).await);
        }
        return (results, terminate);
    }
    let hooks = transcript.hooks;
    let mut admitted = Vec::new();
    // One entry for each call from the first that runs on, in order: the outcome of a refused call,
    // `None` for one that runs.
    let mut refused = Vec::with_capacity(calls.len());
    for call in calls {
        match admit(hooks, call, truncated, tools, cancel).await {
            Ok(call) => {
                admitted.push(call);
                refused.push(None);
            }
            Err(outcome) => {
                terminate &= outcome.output.terminate;
                let outcome = hooks.finish_tool_call(call, outcome).await;
                match admitted.is_empty() {
                    true => results.push(append_result(transcript, call, outcome).await),
                    false => refused.push(Some((call, outcome))),
                }
            }
        }
    }
    wait_before_files_change(hooks, &admitted, cancel).await;
    let queueing: Vec<_> = admitted.iter().map(|one| one.tool.queueing()).collect();
    let slots = start_order::start_slots(&queueing);
    let (ended, outcomes): (Vec<_>, Vec<_>) = admitted.iter().map(|_| oneshot::channel()).unzip();
    let running =
        admitted
            .iter()
            .zip(&slots)
            .zip(ended)
            .map(|((admitted, slot), ended)| async move {
                // The receiver below waits for every call.
                let _ = ended.send(run(hooks, admitted, slot, cancel).await);
            });
    // Runs concurrently with the tools: a slow handler of one result delays no other tool. The
    // results are appended in the order of the calls, whether a call was refused or not.
    let finishing = async {
        let mut outcomes = admitted.iter().zip(outcomes);
        for refused in refused {
            let (call, outcome) = match refused {
                Some(refused) => refused,
                None => {
                    let Some((admitted, outcome)) = outcomes.next() else {
                        continue;
                    };
                    let Ok(outcome) = outcome.await else { continue };
                    let outcome = apply_after_hook(hooks, admitted, outcome, cancel).await;
                    terminate &= outcome.output.terminate;
                    let call = admitted.call;
                    (call, hooks.finish_tool_call(call, outcome).await)
                }
            };
            results.push(append_result(transcript, call, outcome).await);
        }
    };
    futures::future::join(futures::future::join_all(running), finishing).await;
    (results, terminate)
}

/// Waits once for all calls: with separate waits, calls could enter the queue of a file in
/// another order than the model made them.
async fn wait_before_files_change(
    hooks: &dyn RunHooks,
    calls: &[AdmittedCall<'_>],
    cancel: &CancellationToken,
) {
    let changes_files =
        |admitted: &AdmittedCall<'_>| FILE_CHANGING.contains(&admitted.call.name.as_str());
    if calls.iter().any(changes_files) {
        tokio::select! {
            () = hooks.before_files_change() => {}
            () = cancel.cancelled() => {}
        }
    }
}

/// Announces a call and decides whether it may run. `Err` is the outcome of a refused call.
async fn admit<'a>(
    hooks: &dyn RunHooks,
    call: &'a ToolCall,
    truncated: bool,
    tools: &[Arc<dyn Tool>],
    cancel: &CancellationToken,
) -> Result<AdmittedCall<'a>, ToolOutcome> {
    let args = hooks.begin_tool_call(call).await;
    if truncated {
        return Err(ToolOutcome::error(truncation_error(call)));
    }
    let tool = find_tool(tools, &call.name)
        .ok_or_else(|| ToolOutcome::error(format!("Tool {} not found", call.name)))?
        .clone();
    if let Some(error) = &call.arguments_error {
        let text = format!(
            "Invalid arguments for tool \"{}\", so it did not run. {error}",
            call.name
        );
        return Err(ToolOutcome::error(text));
    }
    let error = |error: ToolError| ToolOutcome::error(error.0);
    let args = tokio::select! {
        args = tool.prepare_arguments(args) => args.map_err(error)?,
        () = cancel.cancelled() => return Err(ToolOutcome::error("Operation aborted")),
    };
    let mut args = validate(tool.spec(), args).map_err(error)?;
    let unreadable = hooks
        .before_tool_call(call, &mut args, cancel)
        .await
        .map_err(ToolOutcome::from)?;
    if cancel.is_cancelled() {
        return Err(ToolOutcome::error("Operation aborted"));
    }
    Ok(AdmittedCall {
        call,
        tool,
        args,
        unreadable,
    })
}

/// Returns why a call does not run if its answer reached the output limit. Even arguments that
/// are valid JSON may be incomplete, e.g. lack the rest of a list of edits.
fn truncation_error(call: &ToolCall) -> String {
    let cut = call.arguments_error.as_deref().map(tool_arguments::reason);
    let cut = cut.map(|reason| format!(" {reason}.")).unwrap_or_default();
    format!(
        "Tool call \"{}\" did not run: the answer reached the output token limit, so its \
         arguments may be cut off.{cut} Make the call again with complete arguments, in \
         smaller parts if they are long.",
        call.name
    )
}

/// Maximum number of queued partial results. Beyond that the newest replaces the one before it.
const MAX_QUEUED_UPDATES: usize = 64;

/// Partial results of a tool that wait for delivery. The tool never waits.
#[derive(Default)]
struct UpdateQueue {
    waiting: Mutex<VecDeque<ToolOutput>>,
    more: Notify,
}

impl UpdateQueue {
    fn push(&self, output: ToolOutput) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MAX_QUEUED_UPDATES {
            waiting.pop_back();
        }
        waiting.push_back(output);
        drop(waiting);
        self.more.notify_one();
    }

    fn pop(&self) -> Option<ToolOutput> {
        self.waiting.lock().pop_front()
    }
}

/// Runs the tool and emits its partial results: all of them if delivery is fast enough, and the
/// latest in any case.
async fn run(
    hooks: &dyn RunHooks,
    admitted: &AdmittedCall<'_>,
    slot: &StartSlot,
    cancel: &CancellationToken,
) -> ToolOutcome {
    let started = slot.started.clone().map(CancellationToken::drop_guard);
    if !slot.wait(&admitted.call.name, cancel).await {
        return ToolOutcome::error("Operation aborted");
    }
    let (at_once, remote) = match admitted.tool.queueing() {
        Queueing::Remote { .. } => (None, started),
        Queueing::AtOnce | Queueing::Never => (started, None),
    };
    let updates = Arc::<UpdateQueue>::default();
    let sink = updates.clone();
    let started_at = Instant::now();
    let execution = admitted.tool.execute(ToolInvocation {
        id: admitted.call.id.clone(),
        args: admitted.args.clone(),
        cancel: cancel.clone(),
        updates: Arc::new(move |output| sink.push(output)),
        started: remote,
        unreadable: admitted.unreadable.clone(),
    });
    tokio::pin!(execution);
    let mut early = match futures::poll!(&mut execution) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    };
    drop(at_once);
    let emit_updates = async || {
        while let Some(output) = updates.pop() {
            let update = Event::ToolExecutionUpdate {
                tool_call_id: admitted.call.id.clone(),
                tool_name: admitted.call.name.clone(),
                args: admitted.call.arguments.clone(),
                partial_result: output,
            };
            hooks.emit(update).await;
        }
    };
    let result = loop {
        if let Some(result) = early.take() {
            break result;
        }
        tokio::select! {
            biased;
            () = updates.more.notified() => emit_updates().await,
            result = &mut execution => break result,
        }
    };
    let duration = Some(started_at.elapsed());
    // Emit partial results that came together with the result.
    emit_updates().await;
    match result {
        Ok(output) => ToolOutcome {
            is_error: output.reports_failure(),
            output,
            duration,
        },
        Err(error) => ToolOutcome {
            duration,
            ..ToolOutcome::error(error.0)
        },
    }
}

async fn apply_after_hook(
    hooks: &dyn RunHooks,
    admitted: &AdmittedCall<'_>,
    mut outcome: ToolOutcome,
    cancel: &CancellationToken,
) -> ToolOutcome {
    hooks
        .after_tool_call(admitted.call, &admitted.args, &mut outcome, cancel)
        .await;
    outcome
}

async fn append_result(
    transcript: &mut Transcript<'_>,
    call: &ToolCall,
    outcome: ToolOutcome,
) -> Arc<AgentMessage> {
    let message = Arc::new(AgentMessage::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        usage: outcome.output.other.get("usage").cloned(),
        content: outcome.output.content,
        details: outcome.output.details,
        is_error: outcome.is_error,
        timestamp: now(),
    }));
    transcript.append(message).await
}
