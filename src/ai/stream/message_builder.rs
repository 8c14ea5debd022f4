//! Builds the message of an answer from the pieces of its stream, and sends each step to the
//! reader.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::partial_message::GrowingArguments;
use super::tool_arguments;
use crate::failure::Failure;
use crate::json::surrogates::{EdgeSurrogates, SurrogateJoiner};
use crate::message::{
    AssistantBlock, AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCall, Usage,
    now,
};
use crate::model::{Model, ModelCost};
use crate::stream::{AssistantEvent, PartialMessage, StreamItem};
use pi_base::secrets;

/// Methods that report a step fail with [`Failure::Aborted`] when the request was cancelled or
/// the reader of the stream is gone.
///
/// Each step shares the texts of the steps before ([`PartialMessage`]): its cost is the size of what it
/// adds.
pub(crate) struct MessageBuilder {
    message: AssistantMessage,
    partial: PartialMessage,
    stale: StaleParts,
    items: mpsc::Sender<StreamItem>,
    cancel: CancellationToken,
    prices: ModelCost,
    /// Arguments of the calls, by content index.
    tool_calls: HashMap<usize, Arguments>,
    /// Joiners of the blocks that were cut inside a character, by content index.
    joiners: HashMap<usize, SurrogateJoiner>,
    /// Halves of characters in the event that is being read.
    halves: EdgeSurrogates,
}

/// The parts of `partial` that differ from `message`.
#[derive(Default)]
struct StaleParts {
    all: bool,
    head: bool,
    blocks: Vec<usize>,
}

/// The arguments of a call that is streamed. Only `shared` grows with each piece; the call in
/// the message gets them when it is looked at.
#[derive(Default)]
struct Arguments {
    shared: GrowingArguments,
    /// Whether the call in the message has older arguments.
    is_ahead: bool,
    /// An empty object that came first. Some servers send one in place of arguments that follow,
    /// so it is not shown before the call ends.
    placeholder: String,
    /// The text of a call that was reported as complete. If more arrives, because a server mixes
    /// the pieces of several calls, the call is opened again.
    ended: Option<String>,
}

impl Arguments {
    /// Shows `text` in place of all text that has come so far.
    fn restart(&mut self, call: &mut ToolCall, text: String) {
        self.shared = GrowingArguments::new(&text);
        self.is_ahead = true;
        call.arguments_error = None;
        call.partial_json = Some(text);
    }

    /// Gives the call its arguments so far.
    fn update(&mut self, call: &mut ToolCall) {
        if std::mem::take(&mut self.is_ahead) {
            call.arguments = self.shared.value();
        }
    }
}

/// The error of a call that has no arguments and was never reported as complete. Such a call is
/// not made.
const MISSING_ARGUMENTS: &str = "The answer ended before the arguments of the call came";

impl MessageBuilder {
    pub(crate) fn new(
        model: &Model,
        items: mpsc::Sender<StreamItem>,
        cancel: CancellationToken,
    ) -> Self {
        let message = AssistantMessage {
            content: Vec::new(),
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            response_id: None,
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            error_message: None,
            timestamp: now(),
        };
        Self {
            partial: PartialMessage::new(&message),
            message,
            stale: StaleParts::default(),
            items,
            cancel,
            prices: model.cost.clone(),
            tool_calls: HashMap::new(),
            joiners: HashMap::new(),
            halves: EdgeSurrogates::default(),
        }
    }

    /// Reads the JSON of one event. Its texts may end with half of a character whose other
    /// half comes in the next event; the `add_…` methods join the two.
    pub(crate) fn read_event(&mut self, json: &str) -> Result<Value, Failure> {
        self.halves = EdgeSurrogates::default();
        let error = match serde_json::from_str(json) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let repaired = tool_arguments::repair(json);
        let repaired = repaired.and_then(|repaired| serde_json::from_str(&repaired.text).ok());
        if repaired.is_some() {
            self.halves = EdgeSurrogates::find(json);
        }
        repaired.ok_or_else(|| Failure::malformed(&error, json))
    }

    /// Returns the text that a piece adds to a block.
    fn join_halves<'a>(&mut self, content_index: usize, delta: &'a str) -> Cow<'a, str> {
        if self.halves.is_empty() && !self.joiners.contains_key(&content_index) {
            return Cow::Borrowed(delta);
        }
        let joiner = self.joiners.entry(content_index).or_default();
        joiner.push(delta, &mut self.halves)
    }

    /// Returns the text that is missing at the end of a complete block.
    fn last_half(&mut self, content_index: usize) -> &'static str {
        let joiner = self.joiners.get_mut(&content_index);
        joiner.map(SurrogateJoiner::end).unwrap_or_default()
    }

    /// Waits for `work` unless the request is cancelled or the reader of the stream is gone.
    pub(crate) async fn interruptible<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Failure::Aborted),
            () = self.items.closed() => Err(Failure::Aborted),
            result = work => Ok(result),
        }
    }

    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// Returns the message with the arguments of all calls so far.
    pub(crate) fn message_so_far(&mut self) -> &AssistantMessage {
        for content_index in 0..self.message.content.len() {
            self.update_arguments(content_index);
        }
        &self.message
    }

    fn update_arguments(&mut self, content_index: usize) {
        if let (Some(AssistantBlock::ToolCall(call)), Some(arguments)) = (
            self.message.content.get_mut(content_index),
            self.tool_calls.get_mut(&content_index),
        ) {
            arguments.update(call);
        }
    }

    /// Gives access to the message for changes that are not a step of their own; the next step
    /// shows them.
    pub(crate) fn edit(&mut self) -> &mut AssistantMessage {
        self.message_so_far();
        self.stale.all = true;
        &mut self.message
    }

    /// Sets the token counts and computes their cost.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.message.usage = usage;
        self.message.usage.price(&self.prices);
        self.stale.head = true;
    }

    pub(crate) async fn start(&mut self) -> Result<(), Failure> {
        self.report(AssistantEvent::Start).await
    }

    /// Starts a text block and returns its content index.
    pub(crate) async fn start_text(&mut self) -> Result<usize, Failure> {
        let content_index = self.add(AssistantBlock::Text(TextContent::default()));
        self.report(AssistantEvent::TextStart { content_index })
            .await?;
        Ok(content_index)
    }

    pub(crate) async fn add_text(
        &mut self,
        content_index: usize,
        delta: &str,
    ) -> Result<(), Failure> {
        let delta = self.join_halves(content_index, delta);
        self.grow_text(content_index, &delta).await
    }

    async fn grow_text(&mut self, content_index: usize, delta: &str) -> Result<(), Failure> {
        match self.message.content.get_mut(content_index) {
            Some(AssistantBlock::Text(text)) if !delta.is_empty() => text.text.push_str(delta),
            _ => return Ok(()),
        }
        self.record_growth(content_index, delta);
        self.report(AssistantEvent::TextDelta {
            content_index,
            delta: delta.to_owned(),
        })
        .await
    }

    /// Sets the whole text of a block, for providers that send it after streaming all or part of
    /// it.
    pub(crate) async fn complete_text(
        &mut self,
        content_index: usize,
        whole: String,
    ) -> Result<(), Failure> {
        self.joiners.remove(&content_index);
        let Some(text) = self.text(content_index) else {
            return Ok(());
        };
        if let Some(missing) = whole.strip_prefix(text.text.as_str()) {
            return self.grow_text(content_index, missing).await;
        }
        text.text = whole;
        Ok(())
    }

    pub(crate) async fn end_text(&mut self, content_index: usize) -> Result<(), Failure> {
        let last = self.last_half(content_index);
        self.grow_text(content_index, last).await?;
        let Some(AssistantBlock::Text(text)) = self.message.content.get(content_index) else {
            return Ok(());
        };
        self.report(AssistantEvent::TextEnd {
            content_index,
            content: text.text.clone(),
        })
        .await
    }

    pub(crate) async fn start_thinking(
        &mut self,
        thinking: ThinkingContent,
    ) -> Result<usize, Failure> {
        let content_index = self.add(AssistantBlock::Thinking(thinking));
        self.report(AssistantEvent::ThinkingStart { content_index })
            .await?;
        Ok(content_index)
    }

    pub(crate) async fn add_thinking(
        &mut self,
        content_index: usize,
        delta: &str,
    ) -> Result<(), Failure> {
        let delta = self.join_halves(content_index, delta);
        self.grow_thinking(content_index, &delta).await
    }

    async fn grow_thinking(&mut self, content_index: usize, delta: &str) -> Result<(), Failure> {
        match self.message.content.get_mut(content_index) {
            Some(AssistantBlock::Thinking(thinking)) if !delta.is_empty() => {
                thinking.thinking.push_str(delta);
            }
            _ => return Ok(()),
        }
        self.record_growth(content_index, delta);
        self.report(AssistantEvent::ThinkingDelta {
            content_index,
            delta: delta.to_owned(),
        })
        .await
    }

    /// Like [`Self::complete_text`], for a thinking block.
    pub(crate) async fn complete_thinking(
        &mut self,
        content_index: usize,
        whole: String,
    ) -> Result<(), Failure> {
        self.joiners.remove(&content_index);
        let Some(thinking) = self.thinking(content_index) else {
            return Ok(());
        };
        if let Some(missing) = whole.strip_prefix(thinking.thinking.as_str()) {
            return self.grow_thinking(content_index, missing).await;
        }
        thinking.thinking = whole;
        Ok(())
    }

    pub(crate) async fn end_thinking(&mut self, content_index: usize) -> Result<(), Failure> {
        let last = self.last_half(content_index);
        self.grow_thinking(content_index, last).await?;
        let Some(AssistantBlock::Thinking(thinking)) = self.message.content.get(content_index)
        else {
            return Ok(());
        };
        self.report(AssistantEvent::ThinkingEnd {
            content_index,
            content: thinking.thinking.clone(),
        })
        .await
    }

    /// `arguments` holds the arguments that are known at once, as an object or as the beginning
    /// of their text; usually there are none.
    pub(crate) async fn start_tool_call(
        &mut self,
        id: String,
        name: String,
        arguments: Value,
    ) -> Result<usize, Failure> {
        let (arguments, text) = match arguments {
            Value::Object(_) => (arguments, String::new()),
            Value::Null => (Value::Object(Map::new()), String::new()),
            Value::String(text) => (Value::Object(Map::new()), text),
            other => (Value::Object(Map::new()), other.to_string()),
        };
        let content_index = self.add(AssistantBlock::ToolCall(ToolCall {
            id,
            name,
            arguments,
            partial_json: Some(String::new()),
            ..ToolCall::default()
        }));
        self.tool_calls.insert(content_index, Arguments::default());
        self.report(AssistantEvent::ToolCallStart { content_index })
            .await?;
        self.add_arguments(content_index, &text).await?;
        Ok(content_index)
    }

    pub(crate) async fn add_arguments(
        &mut self,
        content_index: usize,
        delta: &str,
    ) -> Result<(), Failure> {
        let delta = self.join_halves(content_index, delta);
        let (Some(AssistantBlock::ToolCall(call)), Some(arguments)) = (
            self.message.content.get_mut(content_index),
            self.tool_calls.get_mut(&content_index),
        ) else {
            return Ok(());
        };
        if delta.is_empty() {
            return Ok(());
        }
        if let Some(text) = arguments.ended.take() {
            arguments.restart(call, text);
            self.stale.blocks.push(content_index);
        }
        let known = call.partial_json.as_deref().unwrap_or_default();
        if known.trim().is_empty() && tool_arguments::is_empty_object(&delta) {
            arguments.placeholder = delta.into_owned();
            return Ok(());
        }
        arguments.placeholder.clear();
        if tool_arguments::is_empty_object(known) && !delta.trim().is_empty() {
            arguments.restart(call, String::new());
            self.stale.blocks.push(content_index);
        }
        self.grow_arguments(content_index, &delta).await
    }

    async fn grow_arguments(&mut self, content_index: usize, delta: &str) -> Result<(), Failure> {
        let (Some(AssistantBlock::ToolCall(call)), Some(arguments)) = (
            self.message.content.get_mut(content_index),
            self.tool_calls.get_mut(&content_index),
        ) else {
            return Ok(());
        };
        if delta.is_empty() {
            return Ok(());
        }
        call.partial_json.get_or_insert_default().push_str(delta);
        arguments.shared.push(delta);
        // White space before the arguments changes nothing that was known at once.
        arguments.is_ahead |= !arguments.shared.is_blank();
        let shared = arguments.shared.clone();
        if self.is_current(content_index) && !self.partial.set_arguments(content_index, shared) {
            self.stale.blocks.push(content_index);
        }
        self.report(AssistantEvent::ToolCallDelta {
            content_index,
            delta: delta.to_owned(),
        })
        .await
    }

    /// Sets the whole text of the arguments, for providers that send it after streaming all or
    /// part of it. An empty object is ignored if there are arguments.
    pub(crate) async fn complete_arguments(
        &mut self,
        content_index: usize,
        whole: &str,
    ) -> Result<(), Failure> {
        if whole.trim().is_empty() {
            return Ok(());
        }
        let arguments = self.tool_calls.get(&content_index);
        let ended = arguments.and_then(|arguments| arguments.ended.as_deref());
        let Some(AssistantBlock::ToolCall(call)) = self.message.content.get(content_index) else {
            return Ok(());
        };
        let seen = ended.or(call.partial_json.as_deref()).unwrap_or_default();
        if tool_arguments::is_empty_object(whole) && !seen.trim().is_empty() || whole == seen {
            return Ok(());
        }
        if let Some(missing) = whole.strip_prefix(seen) {
            let missing = missing.to_owned();
            self.joiners.remove(&content_index);
            return self.add_arguments(content_index, &missing).await;
        }
        self.joiners.remove(&content_index);
        if let (Some(AssistantBlock::ToolCall(call)), Some(arguments)) = (
            self.message.content.get_mut(content_index),
            self.tool_calls.get_mut(&content_index),
        ) {
            arguments.ended = None;
            arguments.placeholder.clear();
            arguments.restart(call, whole.to_owned());
            self.stale.blocks.push(content_index);
        }
        Ok(())
    }

    /// Replaces a call that was streamed by a whole call.
    pub(crate) async fn replace_tool_call(
        &mut self,
        content_index: usize,
        whole: ToolCall,
    ) -> Result<(), Failure> {
        self.joiners.remove(&content_index);
        let streamed = self.tool_calls.insert(content_index, Arguments::default());
        let placeholder = streamed.unwrap_or_default().placeholder;
        self.grow_arguments(content_index, &placeholder).await?;
        if let Some(known) = self.tool_call(content_index) {
            // Without a text the arguments are used unchanged when the call ends.
            let partial_json = Some(String::new());
            *known = ToolCall {
                partial_json,
                ..whole
            };
        }
        Ok(())
    }

    /// Returns true if the text of a call's arguments is a complete value, or no JSON: in both
    /// cases no more text is expected. An empty object may be a placeholder.
    pub(crate) fn arguments_are_closed(&self, content_index: usize) -> bool {
        let arguments = self.tool_calls.get(&content_index);
        arguments.is_some_and(|arguments| arguments.shared.is_closed())
    }

    /// Returns true if text of a call's arguments has come, if only an empty object.
    pub(crate) fn arguments_have_begun(&self, content_index: usize) -> bool {
        let arguments = self.tool_calls.get(&content_index);
        arguments.is_some_and(|it| !it.placeholder.is_empty() || !it.shared.is_blank())
    }

    /// Ends a call. A call that has ended is left unchanged.
    pub(crate) async fn end_tool_call(&mut self, content_index: usize) -> Result<(), Failure> {
        let mut last = self.last_half(content_index).to_owned();
        if let Some(arguments) = self.tool_calls.get_mut(&content_index) {
            last.push_str(&std::mem::take(&mut arguments.placeholder));
        }
        self.grow_arguments(content_index, &last).await?;
        let content = &mut self.message.content;
        let Some(AssistantBlock::ToolCall(call)) = content.get_mut(content_index) else {
            return Ok(());
        };
        let Some(text) = call.partial_json.take() else {
            return Ok(());
        };
        if !tool_arguments::is_blank(&text) {
            call.set_arguments(&text);
        }
        let tool_call = call.clone();
        self.stale.blocks.push(content_index);
        let arguments = self.tool_calls.entry(content_index).or_default();
        arguments.is_ahead = false;
        arguments.ended = Some(text);
        self.report(AssistantEvent::ToolCallEnd {
            content_index,
            tool_call,
        })
        .await
    }

    /// Ends the calls that the provider started and did not end. A call without arguments may
    /// have been cut off before they came, so it is not made.
    async fn end_open_calls(&mut self) -> Result<(), Failure> {
        for content_index in 0..self.message.content.len() {
            let Some(AssistantBlock::ToolCall(call)) = self.message.content.get_mut(content_index)
            else {
                continue;
            };
            let Some(text) = &call.partial_json else {
                continue;
            };
            let known = call
                .arguments
                .as_object()
                .is_some_and(|known| !known.is_empty());
            let placeholder = self.tool_calls.get(&content_index);
            let placeholder = placeholder.is_some_and(|it| !it.placeholder.is_empty());
            if tool_arguments::is_blank(text) && !known && !placeholder {
                call.arguments_error = Some(MISSING_ARGUMENTS.to_owned());
            }
            self.end_tool_call(content_index).await?;
        }
        Ok(())
    }

    pub(crate) fn thinking(&mut self, content_index: usize) -> Option<&mut ThinkingContent> {
        match self.block(content_index) {
            Some(AssistantBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self, content_index: usize) -> Option<&mut TextContent> {
        match self.block(content_index) {
            Some(AssistantBlock::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn tool_call(&mut self, content_index: usize) -> Option<&mut ToolCall> {
        match self.block(content_index) {
            Some(AssistantBlock::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// Sends the last item; a failure becomes part of the message.
    pub(crate) async fn finish(mut self, result: Result<(), Failure>) {
        let result = match (self.cancel.is_cancelled(), result) {
            (true, _) => Err(Failure::Aborted),
            (false, Ok(())) => self.end_open_calls().await,
            (false, failed) => failed,
        };
        let message = &mut self.message;
        if let Err(failure) = result {
            message.stop_reason = match failure {
                Failure::Aborted => StopReason::Aborted,
                _ => StopReason::Error,
            };
            // Some servers repeat the key that they refuse.
            let text = failure.to_string();
            message.error_message = Some(secrets::redact(&text).into_owned());
        }
        self.send().await;
    }

    /// Sends the last item of an answer that states its own stop reason. The calls of an aborted
    /// answer are not made.
    pub(crate) async fn finish_unchanged(mut self) {
        let message = &mut self.message;
        let unfinished = !matches!(message.stop_reason, StopReason::Stop | StopReason::Length);
        if self.cancel.is_cancelled() && unfinished {
            message.stop_reason = StopReason::Aborted;
            let words = message.error_message.take();
            message.error_message = words.or_else(|| Some(Failure::Aborted.to_string()));
        }
        // A call that was not ended may have a text that was cut off.
        for block in &mut message.content {
            if let AssistantBlock::ToolCall(call) = block
                && let Some(text) = call.partial_json.take()
                && !tool_arguments::is_blank(&text)
            {
                call.set_arguments(&text);
            }
        }
        for arguments in self.tool_calls.values_mut() {
            arguments.is_ahead = false;
        }
        self.send().await;
    }

    async fn send(mut self) {
        self.message_so_far();
        for (index, joiner) in &mut self.joiners {
            // A call that ends here is not made: its arguments are only shown.
            match self.message.content.get_mut(*index) {
                Some(AssistantBlock::Text(text)) => text.text.push_str(joiner.end()),
                Some(AssistantBlock::Thinking(it)) => it.thinking.push_str(joiner.end()),
                _ => {}
            }
        }
        for block in &mut self.message.content {
            if let AssistantBlock::ToolCall(call) = block {
                call.partial_json = None;
            }
        }
        // Sending fails only if the reader of the stream is gone, which is no error here.
        let _ = self
            .items
            .send(StreamItem::Done(Arc::new(self.message)))
            .await;
    }

    fn add(&mut self, block: AssistantBlock) -> usize {
        let content = &mut self.message.content;
        content.push(block);
        self.stale.blocks.push(content.len() - 1);
        content.len() - 1
    }

    fn block(&mut self, content_index: usize) -> Option<&mut AssistantBlock> {
        self.update_arguments(content_index);
        self.stale.blocks.push(content_index);
        self.message.content.get_mut(content_index)
    }

    /// Records that a block has grown by `delta` and changed in no other way.
    fn record_growth(&mut self, content_index: usize, delta: &str) {
        if self.is_current(content_index) && !self.partial.push(content_index, delta) {
            self.stale.blocks.push(content_index);
        }
    }

    /// Returns true if `partial` has the last state of the block.
    fn is_current(&self, content_index: usize) -> bool {
        !self.stale.all && !self.stale.blocks.contains(&content_index)
    }

    /// Returns the current state of the message.
    fn partial(&mut self) -> PartialMessage {
        let stale = std::mem::take(&mut self.stale);
        if stale.all {
            self.partial = PartialMessage::new(self.message_so_far());
            return self.partial.clone();
        }
        if stale.head {
            self.partial.set_head(&self.message);
        }
        for index in stale.blocks {
            self.update_arguments(index);
            let shared = self.tool_calls.get(&index).map(|it| &it.shared);
            if let Some(block) = self.message.content.get(index) {
                self.partial.set_block(index, block, shared);
            }
        }
        self.partial.clone()
    }

    async fn report(&mut self, event: AssistantEvent) -> Result<(), Failure> {
        let partial = self.partial();
        let item = StreamItem::Event { event, partial };
        self.interruptible(self.items.send(item))
            .await?
            .map_err(|_| Failure::Aborted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stream::AssistantStream;
    use crate::testing::{collect, model};

    fn answer() -> (MessageBuilder, AssistantStream, CancellationToken) {
        let (items, stream) = AssistantStream::channel();
        let cancel = CancellationToken::new();
        let answer = MessageBuilder::new(&model("a"), items, cancel.clone());
        (answer, stream, cancel)
    }

    async fn partial(stream: &mut AssistantStream) -> AssistantMessage {
        match stream.next().await {
            Some(StreamItem::Event { partial, .. }) => partial.message(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_snapshot_never_changes_after_its_step() {
        let (mut answer, mut stream, _) = answer();
        let mut then = Vec::new();
        let text = answer.start_text().await.unwrap();
        then.push(answer.message_so_far().clone());
        for piece in ["a", "b"] {
            answer.add_text(text, piece).await.unwrap();
            then.push(answer.message_so_far().clone());
        }
        answer.set_usage(Usage {
            input: 7,
            ..Usage::default()
        });
        let call = answer.start_tool_call("t".into(), "read".into(), Value::Null);
        let call = call.await.unwrap();
        then.push(answer.message_so_far().clone());
        for piece in ["{\"path\":", " \"a", "b\", \"n\": [1, {"] {
            answer.add_arguments(call, piece).await.unwrap();
            then.push(answer.message_so_far().clone());
        }
        answer.edit().response_id = Some("r".into());
        answer.add_text(text, "c").await.unwrap();
        then.push(answer.message_so_far().clone());
        answer.text(text).unwrap().text_signature = Some("s".into());
        answer.add_arguments(call, "}]}").await.unwrap();
        then.push(answer.message_so_far().clone());
        answer.end_tool_call(call).await.unwrap();
        then.push(answer.message_so_far().clone());
        for then in then {
            assert_eq!(partial(&mut stream).await, then);
        }
    }

    #[tokio::test]
    async fn a_slow_reader_blocks_the_provider_until_abort() {
        let (mut answer, stream, cancel) = answer();
        let items = answer.items.downgrade();
        let writer = tokio::spawn(async move {
            let result = async {
                let index = answer.start_text().await?;
                loop {
                    answer.add_text(index, "x").await?;
                }
            };
            let result = result.await;
            answer.finish(result).await;
        });
        while items.upgrade().is_some_and(|items| items.capacity() > 0) {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        let (message, steps) = collect(stream).await;
        writer.await.unwrap();
        assert_eq!(steps.len(), AssistantStream::CAPACITY);
        assert_eq!(message.stop_reason, StopReason::Aborted);
    }

    #[tokio::test]
    async fn a_finished_call_has_no_partial_json() {
        let (mut answer, mut stream, _) = answer();
        let index = answer
            .start_tool_call("t".into(), "read".into(), Value::Null)
            .await
            .unwrap();
        answer.add_arguments(index, "{\"path\": \"a").await.unwrap();
        answer.finish(Err(Failure::Lost("x".into()))).await;
        partial(&mut stream).await;
        let (message, _) = collect(stream).await;
        let calls: Vec<_> = message.tool_calls().cloned().collect();
        let expected = ToolCall {
            id: "t".into(),
            name: "read".into(),
            arguments: json!({"path": "a"}),
            ..ToolCall::default()
        };
        assert_eq!(calls, [expected]);
        assert_eq!(message.error_message.as_deref(), Some("Connection lost: x"));
    }
}
