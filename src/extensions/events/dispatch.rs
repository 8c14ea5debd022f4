//! Calls the handlers of an event one after the other and merges their results by the rule
//! of the event's row in the table.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::mutations::Mutation;
use super::table::{self, EventKind, Limit, Merge, OnError};
use super::turn_end::Proposal;
use crate::diagnostics::ignored_results::{self, ignored_members};
use crate::diagnostics::results::Accepted;
use crate::lifecycle::generation::{CallFailure, Generation};
use crate::limits::abandoned::PendingCall;
use crate::registry::{ExtensionId, FunctionId};
use pi_agent::event::ExtensionError;
use pi_ai::json::depth::{self, Origin};

/// Limit of each handler of a [`Merge::Ignore`] event that is called after an abort.
/// Handlers that do not wait themselves finish within it.
const SKIPPED_HANDLER_GRACE: Duration = Duration::from_millis(100);
/// How long a result may take to arrive after an abort.
const RESULT_GRACE: Duration = Duration::from_millis(20);
/// Factor for handlers that may ask a model for a summary: a handler limit of 30 s becomes
/// 10 minutes. An abort ends the wait at any time.
const SUMMARY_LIMIT_FACTOR: u32 = 20;

/// The effects of handlers on an event, whose row says which members may be set.
#[derive(Debug, Default)]
pub struct Emission {
    /// The event as the last handler left it; empty for queued events.
    pub event: Map<String, Value>,
    /// The winning result, for events where one result wins.
    pub result: Option<Map<String, Value>>,
    /// Collected members: name, extension, value.
    pub collected: Vec<(&'static str, ExtensionId, Value)>,
    /// The reason, if a handler failed and failures block.
    pub block_reason: Option<String>,
    /// Whether the wait for handlers was aborted.
    pub aborted: bool,
    /// Whether a handler ended the round.
    pub stopped: bool,
    /// Errors to show to the user.
    pub errors: Vec<ExtensionError>,
    /// The change of a queued event.
    pub mutation: Option<Mutation>,
    /// The proposal of the handlers of a [`Merge::Propose`] event.
    pub proposal: Option<Proposal>,
}

impl Emission {
    /// Returns whether `member` of the winning result is truthy (`cancel`, `block`).
    pub fn is_set(&self, member: &str) -> bool {
        self.result
            .as_ref()
            .is_some_and(|result| truthy(result.get(member)))
    }
}

#[derive(Serialize)]
struct Dispatch<'a> {
    extension: ExtensionId,
    handler: FunctionId,
    call: u64,
    event: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mutable: &'a [&'a str],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_place_only: bool,
    run: Option<u64>,
}

#[derive(Deserialize)]
struct HandlerResult {
    #[serde(default)]
    result: Value,
    #[serde(default)]
    mutated: Map<String, Value>,
    #[serde(default)]
    assigned: Vec<String>,
}

impl Generation {
    /// Calls all handlers of `name`. `event` has all members but `type`. Returns at once
    /// when `cancel` fires. Handlers that were not called by then are skipped, unless the
    /// event is a [`Merge::Ignore`] one: those are called, with a short limit.
    pub async fn dispatch(
        &self,
        name: &'static str,
        event: Map<String, Value>,
        run: Option<u64>,
        cancel: &CancellationToken,
    ) -> Emission {
        let mut emission = Emission {
            event,
            ..Emission::default()
        };
        let Some((_, kind)) = table::find(name) else {
            debug_assert!(false, "no row for {name}");
            return emission;
        };
        let handlers = self.host.registry.lock().handlers(name);
        let _starting = match name {
            "session_start" => {
                self.session_started.store(true, Ordering::Relaxed);
                Some(self.session_start_lock.lock().await)
            }
            _ => None,
        };
        if handlers.is_empty() {
            return emission;
        }
        emission.event.shift_insert(0, "type".into(), name.into());
        // An event of the queue comes from a handler that blocks the queue.
        if !kind.merge.is_queued() {
            // The abort counts first: it ends the wait for the queue, too.
            tokio::select! {
                biased;
                () = cancel.cancelled() => self.mark_aborted(kind, &mut emission),
                () = self.drain_before(kind) => {}
            }
        }
        for (extension, handler) in handlers {
            let calls_all = matches!(kind.merge, Merge::Ignore);
            if emission.aborted && !calls_all {
                break;
            }
            let call = self.token();
            let dispatch = Dispatch {
                extension,
                handler,
                call,
                event: &emission.event,
                mutable: kind.mutable,
                in_place_only: kind.in_place_only,
                run,
            };
            let limit = self.abandoned.limit_for(handler, self.limit(kind));
            let called = match calls_all {
                true => self.call_detached("dispatch", &dispatch).left_future(),
                false => self.call("dispatch", &dispatch).right_future(),
            };
            let what = || format!("The {name} handler");
            let handled = self.limit_call(extension, name, limit, what, called);
            let aborted = async {
                if emission.aborted {
                    tokio::time::sleep(SKIPPED_HANDLER_GRACE).await;
                } else {
                    cancel.cancelled().await;
                    // A handler that aborts and returns has returned its result.
                    tokio::time::sleep(RESULT_GRACE).await;
                }
            };
            // Handlers are called first, even after an abort.
            let result = tokio::select! {
                biased;
                result = handled => result,
                () = aborted => Err(CallFailure::Cancelled),
            };
            match &result {
                Ok(_) => self.abandoned.mark_returned(handler),
                Err(CallFailure::Thrown { .. }) => {
                    self.abandoned.mark_returned(handler);
                    self.take_mutations(kind, &mut emission, (extension, handler), call, limit)
                        .await;
                }
                Err(CallFailure::Deadline { .. }) => {
                    self.abandon(handler, call);
                    self.take_mutations(
                        kind,
                        &mut emission,
                        (extension, handler),
                        call,
                        SKIPPED_HANDLER_GRACE,
                    )
                    .await;
                }
                Err(CallFailure::Cancelled) => {
                    self.mark_aborted(kind, &mut emission);
                    // After a shutdown nothing is left that could show the report.
                    if kind.limit != Limit::Shutdown {
                        self.watch_skipped(
                            extension,
                            PendingCall::Dispatched(handler, call),
                            name,
                            limit,
                        );
                    }
                    self.take_mutations(
                        kind,
                        &mut emission,
                        (extension, handler),
                        call,
                        SKIPPED_HANDLER_GRACE,
                    )
                    .await;
                    continue;
                }
                Err(CallFailure::Stopped(_) | CallFailure::Gone | CallFailure::Replaced) => {}
            }
            match result.and_then(|json| parse(kind, json)) {
                Ok(None) => {}
                Ok(Some(result)) => {
                    let merged = self.take_result(kind, &mut emission, extension, handler, result);
                    if merged.await {
                        emission.stopped = true;
                        break;
                    }
                }
                Err(failure) => {
                    // The recovery reports a stop.
                    if !matches!(failure, CallFailure::Stopped(_)) {
                        let path = self.host.registry.lock().path(extension);
                        let place = self.position_if_timed_out(&failure, handler).await;
                        let error = failure.to_error(path, name);
                        emission.errors.push(error.with_frame(place));
                    }
                    if kind.on_error == OnError::Block {
                        emission.block_reason = Some(failure.plain());
                        break;
                    }
                    if matches!(failure, CallFailure::Stopped(_) | CallFailure::Gone) {
                        break;
                    }
                }
            }
        }
        emission
    }

    /// Makes errors of likely mistakes of a handler, with its source position.
    async fn describe_mistakes(
        &self,
        extension: ExtensionId,
        handler: FunctionId,
        event: &str,
        mistakes: Vec<String>,
    ) -> Vec<ExtensionError> {
        let place = match mistakes.is_empty() {
            true => None,
            false => self.source_position_of(handler).await,
        };
        let errors = mistakes.into_iter().map(|mistake| {
            let path = self.host.registry.lock().path(extension);
            ExtensionError::new(path, event, mistake).with_frame(place.clone())
        });
        errors.collect()
    }

    /// Merges a result. Returns whether the round is over.
    async fn take_result(
        &self,
        kind: &EventKind,
        emission: &mut Emission,
        extension: ExtensionId,
        handler: FunctionId,
        result: HandlerResult,
    ) -> bool {
        let mut refused = Vec::new();
        let mut ignored = ignored_members(kind, &emission.event, &result.result);
        let replaced = result.assigned.iter();
        ignored
            .extend(replaced.filter_map(|name| {
                ignored_results::ignored_assignment(kind, name, &result.result)
            }));
        let stops = merge(kind, emission, extension, result, &mut refused);
        let refused = refused.into_iter();
        let mistakes: Vec<String> = refused
            .map(|problem| format!("pi ignores the handler's change: {problem}"))
            .collect();
        let errors = self
            .describe_mistakes(extension, handler, kind.name, mistakes)
            .await;
        emission.errors.extend(errors);
        let ignored = self.host.unreported(extension, kind.name, ignored);
        let warnings = self
            .describe_mistakes(extension, handler, kind.name, ignored)
            .await;
        let warnings = warnings.into_iter().map(ExtensionError::as_warning);
        emission.errors.extend(warnings);
        stops
    }

    /// Takes the in-place changes of a handler without a result. They count, as in the
    /// original, because the handler may have removed secrets.
    async fn take_mutations(
        &self,
        kind: &EventKind,
        emission: &mut Emission,
        (extension, handler): (ExtensionId, FunctionId),
        call: u64,
        limit: Duration,
    ) {
        if kind.mutable.is_empty() || kind.on_error == OnError::Block {
            return;
        }
        let changes = tokio::time::timeout(limit, self.call("mutationsOf", &call)).await;
        // A handler that is gone or too slow has no known changes.
        if let Ok(Ok(Some(result))) = changes.map(|json| json.and_then(|json| parse(kind, json))) {
            self.take_result(kind, emission, extension, handler, result)
                .await;
        }
    }

    /// Returns when the queue is empty, or when a queued handler waits for the agent and so
    /// perhaps for the caller.
    pub async fn wait_drained(&self) {
        tokio::select! {
            () = self.event_queue.drain() => {}
            () = self.host.agent_waits.wait_any() => {}
        }
    }

    /// Like [`Self::wait_drained`], in the middle of `run`. After `cancel` fires, handlers
    /// that do not wait themselves may finish; later events of this run are not waited for.
    pub async fn wait_handlers(&self, run: Option<u64>, cancel: &CancellationToken) {
        let is_aborted = run.is_some_and(|run| run == self.aborted_run.load(Ordering::Relaxed));
        if is_aborted || self.event_queue.is_empty() {
            return;
        }
        let aborted = async {
            cancel.cancelled().await;
            tokio::time::sleep(SKIPPED_HANDLER_GRACE).await;
            if let Some(run) = run {
                self.aborted_run.store(run, Ordering::Relaxed);
            }
        };
        tokio::select! {
            biased;
            () = self.wait_drained() => {}
            () = aborted => {}
        }
    }

    fn mark_aborted(&self, kind: &EventKind, emission: &mut Emission) {
        emission.aborted = true;
        if kind.on_error == OnError::Block {
            emission.block_reason = Some(CallFailure::Cancelled.to_string());
        }
    }

    /// Waits until queued events that happened earlier are handled.
    async fn drain_before(&self, kind: &EventKind) {
        match kind.limit {
            Limit::Handler | Limit::Summary => self.wait_drained().await,
            // `Extensions::emit_shutdown` has waited already, with a limit.
            Limit::Shutdown => {}
        }
    }

    fn limit(&self, kind: &EventKind) -> Duration {
        let timeouts = &self.timeouts;
        if let Some(limit) = timeouts.events.get(kind.name) {
            return *limit;
        }
        match kind.limit {
            Limit::Handler => timeouts.handler,
            Limit::Summary => timeouts.handler.saturating_mul(SUMMARY_LIMIT_FACTOR),
            Limit::Shutdown => timeouts.shutdown,
        }
    }
}

/// Events whose members contain stored content, instead of content that is to be stored.
const STORED_CONTENT_EVENTS: [&str; 3] =
    ["context", "context_with_system", "before_provider_request"];

fn parse(kind: &EventKind, json: Option<String>) -> Result<Option<HandlerResult>, CallFailure> {
    let of = match STORED_CONTENT_EVENTS.contains(&kind.name) {
        true => Origin::Forwarded,
        false => Origin::HandlerResult,
    };
    json.map(|json| depth::from_str(&json, of))
        .transpose()
        .map_err(|error| {
            CallFailure::internal(format!("The handler's answer cannot be read: {error}"))
        })
}

/// Merges a result into the emission. Returns whether the round is over.
fn merge(
    kind: &EventKind,
    emission: &mut Emission,
    extension: ExtensionId,
    result: HandlerResult,
    refused: &mut Vec<String>,
) -> bool {
    let mut fitting = |member: &str, value: Value| match (kind.check_member)(member, value) {
        Accepted::All(value) => Some(value),
        Accepted::Part(value, problem) => {
            refused.push(problem);
            Some(value)
        }
        Accepted::Nothing(problem) => {
            refused.push(problem);
            None
        }
    };
    for (member, value) in result.mutated {
        if kind.mutable.contains(&&*member)
            && let Some(value) = fitting(&member, value)
        {
            emission.event.insert(member, value);
        }
    }
    if let Merge::Replace(member) = kind.merge {
        let value = Some(result.result).filter(|result| !result.is_null());
        if let Some(value) = value.and_then(|result| fitting(member, result)) {
            emission.event.insert(member.into(), value);
        }
        return false;
    }
    let Value::Object(result) = result.result else {
        return false;
    };
    if let Err(problem) = (kind.check_result)(&result) {
        // A handler that takes an action over and fails has not left it to others.
        let takes_over = matches!(kind.merge, Merge::First);
        emission.block_reason = takes_over.then(|| problem.clone());
        refused.push(problem);
        return takes_over;
    }
    match &kind.merge {
        Merge::Queue | Merge::QueueAndWait | Merge::Propose | Merge::Ignore | Merge::Replace(_) => {
            false
        }
        Merge::First => {
            emission.result = Some(result);
            true
        }
        Merge::Decision { member, undecided } => {
            let is_decided = result.get(*member) != Some(&(*undecided).into());
            emission.result = is_decided.then_some(result);
            is_decided
        }
        Merge::Last { stop } => {
            let over = truthy(result.get(*stop));
            emission.result = Some(result);
            over
        }
        Merge::Chain {
            members,
            collect,
            only_if,
            stop,
        } => {
            let says = |(member, value): (&str, &str)| result.get(member) == Some(&value.into());
            let members = match only_if {
                Some(condition) if !says(*condition) => &[][..],
                _ => *members,
            };
            for member in members {
                let may_be_null = kind.nullable.contains(member);
                let value = result.get(*member);
                let value = value.filter(|value| may_be_null || !value.is_null());
                if let Some(value) = value.and_then(|value| fitting(member, value.clone())) {
                    emission.event.insert((*member).into(), value);
                }
            }
            for member in *collect {
                if let Some(value) = result.get(*member).filter(|value| !value.is_null()) {
                    emission.collected.push((*member, extension, value.clone()));
                }
            }
            stop.is_some_and(says)
        }
    }
}

/// Returns whether JavaScript considers the value truthy.
fn truthy(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(name: &str, event: Value, results: &[Value]) -> Emission {
        let (_, kind) = table::find(name).unwrap();
        let Value::Object(event) = event else {
            panic!("an object")
        };
        let mut emission = Emission {
            event,
            ..Emission::default()
        };
        for (index, result) in results.iter().enumerate() {
            let result = HandlerResult {
                result: result.clone(),
                mutated: Map::new(),
                assigned: Vec::new(),
            };
            let mut refused = Vec::new();
            if merge(kind, &mut emission, index as u32, result, &mut refused) {
                emission.stopped = true;
                break;
            }
        }
        emission
    }

    #[test]
    fn block_ends_the_round() {
        let emission = merged(
            "tool_call",
            json!({}),
            &[
                json!({"block": true, "reason": "no"}),
                json!({"block": false}),
            ],
        );
        assert!(emission.stopped && emission.is_set("block"));
    }

    #[test]
    fn transformed_input_reaches_the_next_handler() {
        let emission = merged(
            "input",
            json!({"text": "a"}),
            &[
                json!({"action": "transform", "text": "b"}),
                json!({"action": "continue"}),
            ],
        );
        assert_eq!(emission.event["text"], "b");
        assert!(!emission.stopped);
    }

    #[test]
    fn input_changes_only_by_transform() {
        let emission = merged(
            "input",
            json!({"text": "a"}),
            &[json!({"action": "continue", "text": "b"})],
        );
        assert_eq!(emission.event["text"], "a");
    }

    #[test]
    fn before_agent_start_messages_keep_order() {
        let emission = merged(
            "before_agent_start",
            json!({"systemPrompt": "p"}),
            &[
                json!({"message": 1, "systemPrompt": "p+"}),
                json!({"message": 2}),
            ],
        );
        assert_eq!(emission.event["systemPrompt"], "p+");
        assert_eq!(
            emission.collected,
            [("message", 0, json!(1)), ("message", 1, json!(2))]
        );
    }

    #[test]
    fn payload_is_replaced_whole() {
        let emission = merged(
            "before_provider_request",
            json!({"payload": {"a": 1}}),
            &[Value::Null, json!({"b": 2})],
        );
        assert_eq!(emission.event["payload"], json!({"b": 2}));
    }

    #[test]
    fn invalid_result_keeps_earlier_results() {
        let good = json!({"compaction": {"summary": "s"}});
        let emission = merged(
            "session_before_compact",
            json!({}),
            &[good.clone(), json!({"compaction": 5})],
        );
        assert_eq!(emission.result.map(Value::Object), Some(good));
        let payload = json!({"a": 1});
        let emission = merged(
            "before_provider_request",
            json!({ "payload": payload }),
            &[json!(5)],
        );
        assert_eq!(emission.event["payload"], payload);
        let emission = merged(
            "user_bash",
            json!({"command": "c"}),
            &[json!({"result": 5}), json!({"result": {"output": "o"}})],
        );
        assert!(emission.result.is_none());
        let blocked = emission.block_reason.unwrap();
        assert!(
            blocked.starts_with("`result` cannot be used: "),
            "{blocked}"
        );
        assert!(!blocked.contains("UserCommandResult"), "{blocked}");
        for mistake in [
            json!({"action": "transfrom", "text": "b"}),
            json!({"action": "transform"}),
            json!({"text": "b"}),
        ] {
            let emission = merged("input", json!({"text": "a"}), &[mistake]);
            assert_eq!(emission.event["text"], "a");
        }
    }
}
