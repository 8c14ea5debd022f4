//! Asking the handlers of an event, one after the other, and merging what they
//! answer by the rule of the event's row in the table.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::table::{self, EventKind, Limit, Merge, OnError};
use crate::agent::event::ExtensionError;
use crate::ai::nesting::{self, Of};
use crate::extensions::diagnostics::ignored_results::{self, unheard};
use crate::extensions::diagnostics::results::Fit;
use crate::extensions::lifecycle::generation::{CallFailure, Generation};
use crate::extensions::limits::abandoned::PendingCall;
use crate::extensions::registry::{ExtensionId, FunctionId};

/// What each handler of [`Merge::Ignore`] is given that is called after the wait
/// for them was given up: one that does not wait itself comes to its end in it.
const MOMENT: Duration = Duration::from_millis(100);
/// How long the answer of a handler that is there may take to arrive.
const ANSWER: Duration = Duration::from_millis(20);
/// How many times the limit of a handler one may take that summarises: with 30
/// seconds for a handler it is 10 minutes, and an abort ends it at any time.
const SUMMARY: u32 = 20;

/// What came of asking.
#[derive(Debug, Default)]
pub struct Emission {
    /// The event as the last handler left it.
    pub event: Map<String, Value>,
    /// The answer that won, where one wins.
    pub answer: Option<Map<String, Value>>,
    /// What was gathered: member, extension, value.
    pub collected: Vec<(&'static str, ExtensionId, Value)>,
    /// A handler failed, and that blocks; why.
    pub blocked: Option<String>,
    /// The wait for the handlers was given up.
    pub aborted: bool,
    /// A handler ended the round.
    pub stopped: bool,
    /// What went wrong, for the user.
    pub errors: Vec<ExtensionError>,
}

impl Emission {
    /// Whether the answer that won says so (`cancel`, `block`).
    pub fn says(&self, member: &str) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| truthy(answer.get(member)))
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
    /// Asks all handlers of `name`. `event` has all members but `type`. Returns
    /// at once when `cancel` fires; handlers that were not asked by then are not
    /// asked at all, unless the event is one that happens to them all
    /// ([`Merge::Ignore`]): then they are told, and hardly waited for.
    pub async fn emit(
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
        let _greeting = match name {
            "session_start" => {
                self.greeted.store(true, Ordering::Relaxed);
                Some(self.greeting.lock().await)
            }
            _ => None,
        };
        if handlers.is_empty() {
            return emission;
        }
        emission.event.shift_insert(0, "type".into(), name.into());
        // An event of the queue comes here from a handler that the queue stands still for.
        if !matches!(kind.merge, Merge::Queue | Merge::Settle) {
            tokio::select! {
                () = self.drained(kind) => {}
                () = cancel.cancelled() => self.cut_short(kind, &mut emission),
            }
        }
        for (extension, handler) in handlers {
            let told_all = matches!(kind.merge, Merge::Ignore);
            if emission.aborted && !told_all {
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
            let asked = self.call_within(
                extension,
                name,
                limit,
                || format!("The {name} handler"),
                "dispatch",
                &dispatch,
            );
            let given_up = async {
                if emission.aborted {
                    tokio::time::sleep(MOMENT).await;
                } else {
                    cancel.cancelled().await;
                    // Whoever aborts and answers has answered.
                    tokio::time::sleep(ANSWER).await;
                }
            };
            // Also the handlers that nobody waits for are called first.
            let answer = tokio::select! {
                biased;
                answer = asked => answer,
                () = given_up => Err(CallFailure::Cancelled),
            };
            match &answer {
                Ok(_) => self.abandoned.mark_settled(handler),
                Err(CallFailure::Thrown { .. }) => {
                    self.abandoned.mark_settled(handler);
                    self.keep_changes(kind, &mut emission, (extension, handler), call, limit)
                        .await;
                }
                Err(CallFailure::Deadline { .. }) => {
                    self.abandon(handler, call);
                    self.keep_changes(kind, &mut emission, (extension, handler), call, MOMENT)
                        .await;
                }
                Err(CallFailure::Cancelled) => {
                    self.cut_short(kind, &mut emission);
                    // After a shutdown there is nobody left to tell of.
                    if kind.limit != Limit::Shutdown {
                        self.watch_skipped(
                            extension,
                            PendingCall::Dispatched(handler, call),
                            name,
                            limit,
                        );
                    }
                    self.keep_changes(kind, &mut emission, (extension, handler), call, MOMENT)
                        .await;
                    continue;
                }
                Err(CallFailure::Stopped(_) | CallFailure::Gone) => {}
            }
            match answer.and_then(|json| parse(kind, json)) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let took = self.take(kind, &mut emission, extension, handler, answer);
                    if took.await {
                        emission.stopped = true;
                        break;
                    }
                }
                Err(failure) => {
                    // A stop is told of by whoever loads the others again.
                    if !matches!(failure, CallFailure::Stopped(_)) {
                        let path = self.host.registry.lock().path(extension);
                        let place = self.place_if_late(&failure, handler).await;
                        let error = failure.tell_of(path, name);
                        emission.errors.push(error.in_frame(place));
                    }
                    if kind.on_error == OnError::Block {
                        emission.blocked = Some(failure.plain());
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

    /// What a handler did that its author cannot mean, with where it is.
    async fn slips(
        &self,
        extension: ExtensionId,
        handler: FunctionId,
        event: &str,
        slips: Vec<String>,
    ) -> Vec<ExtensionError> {
        let place = match slips.is_empty() {
            true => None,
            false => self.place_of(handler).await,
        };
        let told = slips.into_iter().map(|slip| {
            let path = self.host.registry.lock().path(extension);
            ExtensionError::new(path, event, slip).in_frame(place.clone())
        });
        told.collect()
    }

    /// Returns whether the round is over.
    async fn take(
        &self,
        kind: &EventKind,
        emission: &mut Emission,
        extension: ExtensionId,
        handler: FunctionId,
        result: HandlerResult,
    ) -> bool {
        let mut refused = Vec::new();
        let mut unheard = unheard(kind, &emission.event, &answer.result);
        let replaced = answer.assigned.iter();
        unheard.extend(
            replaced.filter_map(|name| ignored_results::replaced(kind, name, &answer.result)),
        );
        let stops = merge(kind, emission, extension, answer, &mut refused);
        let refused = refused.into_iter();
        let slips: Vec<String> = refused
            .map(|problem| format!("What the handler left was not taken: {problem}"))
            .collect();
        let errors = self.slips(extension, handler, kind.name, slips).await;
        emission.errors.extend(errors);
        let unheard = self.host.unreported(extension, kind.name, unheard);
        let warnings = self.slips(extension, handler, kind.name, unheard).await;
        let warnings = warnings.into_iter().map(ExtensionError::as_warning);
        emission.errors.extend(warnings);
        stops
    }

    /// A handler gives no answer; what it has changed in place before counts, as in the
    /// original: it may have taken out what must not be said.
    async fn keep_changes(
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
        // Whoever is gone, or has no time, has changed nothing that could be known.
        if let Ok(Ok(Some(answer))) = changes.map(|json| json.and_then(|json| parse(kind, json))) {
            self.take(kind, emission, extension, handler, answer).await;
        }
    }

    /// Returns when what was queued has been handled, or a handler waits for the agent,
    /// and so perhaps for the caller.
    pub async fn heard(&self) {
        tokio::select! {
            () = self.notifications.drain() => {}
            () = self.host.agent_waits.wait_any() => {}
        }
    }

    /// [`Self::heard`], in the middle of `run`. When `cancel` fires, what does not wait
    /// itself comes to its end; after that nothing of this run is waited for.
    pub async fn settle(&self, run: Option<u64>, cancel: &CancellationToken) {
        let hurried = run.is_some_and(|run| run == self.given_up.load(Ordering::Relaxed));
        if hurried || self.notifications.is_empty() {
            return;
        }
        let given_up = async {
            cancel.cancelled().await;
            tokio::time::sleep(MOMENT).await;
            if let Some(run) = run {
                self.given_up.store(run, Ordering::Relaxed);
            }
        };
        tokio::select! {
            biased;
            () = self.heard() => {}
            () = given_up => {}
        }
    }

    fn cut_short(&self, kind: &EventKind, emission: &mut Emission) {
        emission.aborted = true;
        if kind.on_error == OnError::Block {
            emission.blocked = Some(CallFailure::Cancelled.to_string());
        }
    }

    /// What happened before is told before.
    async fn drained(&self, kind: &EventKind) {
        match kind.limit {
            Limit::Handler | Limit::Summary => self.heard().await,
            // `Extensions::say_goodbye` has waited, but not for ever.
            Limit::Shutdown => {}
        }
    }

    fn limit(&self, kind: &EventKind) -> Duration {
        let limits = &self.limits;
        if let Some(limit) = limits.events.get(kind.name) {
            return *limit;
        }
        match kind.limit {
            Limit::Handler => limits.handler,
            Limit::Summary => limits.handler.saturating_mul(SUMMARY),
            Limit::Shutdown => limits.shutdown,
        }
    }
}

/// Events that tell what the session keeps, and not of something that it is to keep.
const TELL_WHAT_IS_KEPT: [&str; 3] = ["context", "context_with_system", "before_provider_request"];

fn parse(kind: &EventKind, json: Option<String>) -> Result<Option<HandlerResult>, CallFailure> {
    let of = match TELL_WHAT_IS_KEPT.contains(&kind.name) {
        true => Of::HandedOn,
        false => Of::Answer,
    };
    json.map(|json| nesting::from_str(&json, of))
        .transpose()
        .map_err(|error| {
            CallFailure::of_ours(format!("The handler's answer cannot be read: {error}"))
        })
}

/// Returns whether the round is over.
fn merge(
    kind: &EventKind,
    emission: &mut Emission,
    extension: ExtensionId,
    result: HandlerResult,
    refused: &mut Vec<String>,
) -> bool {
    let mut fitting = |member: &str, value: Value| match (kind.fits)(member, value) {
        Fit::All(value) => Some(value),
        Fit::Part(value, problem) => {
            refused.push(problem);
            Some(value)
        }
        Fit::Nothing(problem) => {
            refused.push(problem);
            None
        }
    };
    for (member, value) in answer.mutated {
        if kind.mutable.contains(&&*member)
            && let Some(value) = fitting(&member, value)
        {
            emission.event.insert(member, value);
        }
    }
    if let Merge::Replace(member) = kind.merge {
        let given = Some(answer.result).filter(|result| !result.is_null());
        if let Some(value) = given.and_then(|result| fitting(member, result)) {
            emission.event.insert(member.into(), value);
        }
        return false;
    }
    let Value::Object(result) = answer.result else {
        return false;
    };
    if let Err(problem) = (kind.makes)(&result) {
        // Whoever takes something over, and fails, has not left it to others.
        let takes_over = matches!(kind.merge, Merge::First);
        emission.blocked = takes_over.then(|| problem.clone());
        refused.push(problem);
        return takes_over;
    }
    match &kind.merge {
        Merge::Queue | Merge::Settle | Merge::Ignore | Merge::Replace(_) => false,
        Merge::First => {
            emission.answer = Some(result);
            true
        }
        Merge::Last { stop } => {
            let over = truthy(result.get(*stop));
            emission.answer = Some(result);
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

/// As JavaScript sees it.
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
            if merge(kind, &mut emission, index as u32, answer, &mut refused) {
                emission.stopped = true;
                break;
            }
        }
        emission
    }

    #[test]
    fn a_block_ends_the_round() {
        let emission = merged(
            "tool_call",
            json!({}),
            &[
                json!({"block": true, "reason": "no"}),
                json!({"block": false}),
            ],
        );
        assert!(emission.stopped && emission.says("block"));
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
    fn input_is_changed_only_by_a_transform() {
        let emission = merged(
            "input",
            json!({"text": "a"}),
            &[json!({"action": "continue", "text": "b"})],
        );
        assert_eq!(emission.event["text"], "a");
    }

    #[test]
    fn messages_of_before_agent_start_are_gathered_in_order() {
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
    fn a_payload_is_replaced_whole() {
        let emission = merged(
            "before_provider_request",
            json!({"payload": {"a": 1}}),
            &[Value::Null, json!({"b": 2})],
        );
        assert_eq!(emission.event["payload"], json!({"b": 2}));
    }

    #[test]
    fn an_answer_that_makes_no_sense_is_not_taken_and_those_before_it_hold() {
        let good = json!({"compaction": {"summary": "s"}});
        let emission = merged(
            "session_before_compact",
            json!({}),
            &[good.clone(), json!({"compaction": 5})],
        );
        assert_eq!(emission.answer.map(Value::Object), Some(good));
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
        assert!(emission.answer.is_none());
        let blocked = emission.blocked.unwrap();
        assert!(
            blocked.starts_with("`result` cannot be used: "),
            "{blocked}"
        );
        assert!(!blocked.contains("UserCommandResult"), "{blocked}");
        for slip in [
            json!({"action": "transfrom", "text": "b"}),
            json!({"action": "transform"}),
            json!({"text": "b"}),
        ] {
            let emission = merged("input", json!({"text": "a"}), &[slip]);
            assert_eq!(emission.event["text"], "a");
        }
    }
}
