//! Dispatches calls of JavaScript by method name: registrations are stored here, everything
//! else goes to the modules of `api` and to the session's [`SessionApi`].

use std::sync::{Arc, Weak};

use js_runtime::{HostError, InputKind, LoadInput};
use serde_json::{Value, json};

use super::envelope::{
    CallerArgs, EnterArgs, ReplacementArgs, ReportArgs, StaleCallArgs, TokenArgs, ToolUpdateArgs,
    UiRequestArgs, WatchArgs, parse, parse_stored, to_value, ui_method,
};
use super::{BridgeHost, BridgeResult};
use crate::api::exec::milliseconds;
use crate::api::session_api::SessionApi;
use crate::api::{
    clipboard, images, model_catalogue, resources, session_manager, settings_files, tool_helpers,
};
use crate::events::table;
use crate::lifecycle::debugger;
use pi_agent::event::{Event, ExtensionError, UiAnswer};

impl BridgeHost {
    pub(super) fn handle_sync(&self, method: &str, args: &str) -> BridgeResult {
        match method {
            "enter" => {
                let enter: EnterArgs = parse(method, args)?;
                if enter.queued {
                    let extension = enter.attribution.extension;
                    *self.queued_wait_at_start.lock() = self.clock.total_wait(extension);
                    self.thread_usage.set_queued(Some(extension));
                }
                *self.current.lock() = enter.attribution;
                return Ok(Value::Null);
            }
            "report" => {
                let report: ReportArgs = parse(method, args)?;
                let stack = js_runtime::readable_stack(&report.error);
                let extension = report.extension;
                let extension = extension.unwrap_or_else(|| self.current().extension);
                let path = self.registry.lock().path(extension);
                let error =
                    ExtensionError::from_thrown(path, report.event, report.plain, Some(stack));
                self.emit(Event::ExtensionError(match report.warning {
                    true => error.as_warning(),
                    false => error,
                }));
                return Ok(Value::Null);
            }
            "result.ignored" => {
                self.warn_of_ignored_result(parse(method, args)?);
                return Ok(Value::Null);
            }
            "debugger.waits" => {
                debugger::set_waiting(args);
                return Ok(Value::Null);
            }
            "pi.watch" => {
                self.watch(parse(method, args)?);
                return Ok(Value::Null);
            }
            "stale.check" => return self.check_stale(args).map(|()| Value::Null),
            "pi.getFlag" => return self.flag(args),
            "pi.execKill" => {
                self.execs.kill(parse::<TokenArgs>(method, args)?.token);
                return Ok(Value::Null);
            }
            "ui.cancel" => {
                self.ui
                    .cancel(self.ui_token(parse::<TokenArgs>(method, args)?.token));
                return Ok(Value::Null);
            }
            "tool.started" => {
                let TokenArgs { token } = parse(method, args)?;
                self.start_guards.lock().remove(&token);
                return Ok(Value::Null);
            }
            "tool.update" => {
                let update: ToolUpdateArgs = parse_stored(method, args)?;
                let sink = self.updates.lock().get(&update.token).cloned();
                if let Some(sink) = sink {
                    sink(update.output);
                }
                return Ok(Value::Null);
            }
            _ => {}
        }
        if method == "ai.stream.abort" {
            return self.streams.abort(method, args);
        }
        if method == "file_mutation.release" {
            return self.file_mutations.release(method, args);
        }
        if method == "staleCall.end" {
            self.stale_calls
                .end(parse::<StaleCallArgs>(method, args)?.stale_call);
            return Ok(Value::Null);
        }
        if let Some(result) = self
            .register(method, args)
            .or_else(|| self.serve_providers(method, args))
            .or_else(|| tool_helpers::serve(method, args))
            .or_else(|| model_catalogue::serve(method, args))
            .or_else(|| settings_files::serve(method, args))
            .or_else(|| resources::serve(method, args))
            .or_else(|| self.sessions.serve(method, args))
            .or_else(|| self.mutations.serve(method, args))
            .or_else(|| self.proposals.serve(method, args, || self.actions(args)))
            .or_else(|| self.summaries.serve(method, args))
            .or_else(|| self.child_sessions.serve(method, args))
            .or_else(|| {
                let options = || self.tool_options();
                self.tool_runs.serve(method, args, options)
            })
        {
            return result;
        }
        let actions = self.actions(args)?;
        if method == "ui.show" {
            let shown = ui_method(args)?;
            if actions.has_ui() && actions.ui_supports(shown.name()) {
                actions.show(shown);
            }
            return Ok(Value::Null);
        }
        actions.call_now(method, args)
    }

    /// Records a file or folder that the extension reads itself.
    fn watch(&self, WatchArgs { extension, path }: WatchArgs) {
        let kind = match path.is_dir() {
            true => InputKind::Listing,
            false => InputKind::Content,
        };
        let input = LoadInput::new(kind, path);
        let answer = input.answer();
        if let Some(imports) = self.imports() {
            imports.note_input(Some(extension), input, answer);
        }
    }

    /// Handles calls that may replace the session. The replaced generation may hold the
    /// prepared session, and a stale call keeps it alive until the command has finished.
    async fn handle_replacement(
        &self,
        actions: &dyn SessionApi,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let replacement: Option<ReplacementArgs> = parse(method, args)?;
        let replacement = replacement.unwrap_or_default();
        // The stale call starts before the replacement, because a replaced generation
        // without open stale calls ends.
        if let Some(call) = replacement.begin_stale_call {
            self.stale_calls.begin(call);
        }
        let result = match (method, replacement.session) {
            ("ctx.prepareSession", _) => {
                match actions.create_session(replacement.parent_session).await {
                    Ok(Some(prepared)) => Ok(json!({ "token": self.sessions.insert(prepared) })),
                    Ok(None) => Ok(Value::Null),
                    Err(error) => Err(HostError::new(error.0)),
                }
            }
            ("ctx.newSession", Some(token)) => match self.sessions.take(token) {
                Ok(prepared) => actions.enter_session(prepared).await,
                Err(error) => Err(error),
            },
            _ => actions.call(method, args).await,
        };
        if let Some(call) = replacement.begin_stale_call
            && !matches!(&result, Ok(result) if result["cancelled"] != true)
        {
            self.stale_calls.end(call);
        }
        result
    }

    pub(super) async fn handle_async(self: Arc<Self>, method: &str, args: &str) -> BridgeResult {
        if method == "pi.exec" {
            let cwd = match self.actions.get().and_then(Weak::upgrade) {
                Some(actions) => actions.cwd(),
                None => ".".to_string(),
            };
            return to_value(self.execs.run(parse(method, args)?, cwd).await);
        }
        match method {
            "ai.stream.open" => {
                let id = self.next_token();
                return self.streams.open(method, args, id);
            }
            "ai.stream.respond" => return self.streams.respond(method, args),
            "clipboard.copy" => return clipboard::copy(method, args).await,
            "image.type" => return images::image_type(method, args).await,
            "image.resize" => return images::resize_image(method, args).await,
            "image.png" => return images::image_to_png(method, args).await,
            "tools.previewEdit" => return tool_helpers::preview_edit(method, args).await,
            "ai.stream.next" => return self.streams.next_events(method, args).await,
            "child.nextEvents" => return self.child_sessions.next_events(method, args).await,
            "child.awaitAction" => return self.child_sessions.await_action(method, args).await,
            "tools.next" => return self.tool_runs.next_events(method, args).await,
            "tools.data" => return self.tool_runs.send_data(method, args).await,
            "user_bash.data" => return self.outputs.send_data(method, args).await,
            "compaction.next" => return self.summaries.next_request(method, args).await,
            "compaction.compact" | "compaction.branch" => {
                return self.summaries.write(method, args).await;
            }
            _ => {}
        }
        if matches!(method, "sessions.list" | "sessions.listAll") {
            return session_manager::list_sessions(method, args).await;
        }
        if let Some(result) = self.serve_providers_async(method, args).await {
            return result;
        }
        if method == "file_mutation.acquire" {
            let token = self.next_token();
            return self.file_mutations.acquire(method, args, token).await;
        }
        let actions = self.actions(args)?;
        match method {
            "child.loadExtensions" => self.child_sessions.load(&*actions, method, args).await,
            "child.open" => {
                self.child_sessions
                    .open(&self, &*actions, method, args)
                    .await
            }
            "ui.request" => {
                let request: UiRequestArgs = parse(method, args)?;
                let method = ui_method(args)?;
                let timeout = request.timeout.and_then(milliseconds);
                let _waiting = self.clock.pause(request.extension);
                let _prompt = actions.ui_prompt(&method);
                let token = Some(self.ui_token(request.token));
                Ok(
                    match self.ui.request(&*actions, method, token, timeout).await {
                        UiAnswer::Value(value) => json!({ "value": value }),
                        UiAnswer::Confirmed(confirmed) => json!({ "confirmed": confirmed }),
                        UiAnswer::Cancelled => json!({ "cancelled": true }),
                    },
                )
            }
            _ => {
                let caller = parse::<CallerArgs>(method, args).ok();
                // Time spent waiting for the agent or the user is not the extension's.
                // Nothing waits for a compaction; its handlers have their own limits.
                let waits = caller.as_ref().filter(|_| method != "ctx.compact");
                let _waiting = waits.map(|caller| self.clock.pause(caller.extension));
                let during = caller.as_ref().and_then(|caller| caller.during.as_deref());
                if let Some(event) = during.filter(|name| table::blocks_session(name)) {
                    // The session waits for this handler.
                    if method == "ctx.waitForIdle" {
                        actions.wait_for_run().await;
                        return Ok(Value::Null);
                    }
                    if actions.is_replacing(method == "ctx.navigateTree") {
                        return Err(session_waits_error(method, event));
                    }
                }
                if method == "ctx.waitForIdle"
                    && let Some(event) = during.filter(|name| table::blocks_run(name))
                {
                    return Err(HostError::new(format!(
                        "ctx.waitForIdle() cannot be waited for in a handler of {event}: the run \
                         goes on only when the handler has answered. Call it without waiting, or \
                         in agent_end"
                    )));
                }
                let waits_for_agent =
                    caller.is_some_and(|caller| caller.queued && method != "pi.setModel");
                let _agent_wait = waits_for_agent.then(|| self.agent_waits.begin());
                self.handle_replacement(&*actions, method, args).await
            }
        }
    }
}

fn session_waits_error(method: &str, event: &str) -> HostError {
    HostError::new(format!(
        "{method}() cannot be waited for in a handler of {event}: the session waits for the handler. \
         Call it when that is over, after session_start, session_compact or session_tree"
    ))
}
