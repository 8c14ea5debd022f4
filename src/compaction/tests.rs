use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::branch::{BranchRequest, branch_part, summarize_branch};
use super::cut_point::{Cut, find_cut};
use super::tokens::{estimate, js_json};
use super::*;
use pi_ai::message::{Message, UserMessage};
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::stream::{Api, AssistantStream, Request, StreamItem};
use pi_resources::settings::CompactionSettings;
use pi_session::message::AgentMessage;
use pi_session::{Entry, Session};

fn session() -> Session {
    Session::in_memory(Path::new("/w"))
}

fn message(value: Value) -> AgentMessage {
    serde_json::from_value(value).unwrap()
}

fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage::new(text, vec![]))
}

fn assistant(content: Value, stop_reason: &str, tokens: u64) -> AgentMessage {
    message(json!({
        "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m",
        "usage": {"totalTokens": tokens}, "stopReason": stop_reason, "timestamp": 1,
    }))
}

fn answer(text: &str) -> AgentMessage {
    assistant(json!([{"type": "text", "text": text}]), "stop", 0)
}

fn calls(name: &str, arguments: Value) -> AgentMessage {
    let call = json!({"type": "toolCall", "id": "c", "name": name, "arguments": arguments});
    assistant(json!([call]), "toolUse", 0)
}

fn result(text: &str) -> AgentMessage {
    message(json!({
        "role": "toolResult", "toolCallId": "c", "toolName": "t", "isError": false,
        "content": [{"type": "text", "text": text}], "timestamp": 1,
    }))
}

/// Makes a text of 40 characters, which are 10 tokens.
fn ten(text: &str) -> String {
    format!("{text:-<40}")
}

/// Appends messages of 10 tokens each; calls have 5.
fn append_messages(session: &mut Session, roles: &str) {
    for role in roles.chars() {
        let message = match role {
            'u' => user(&ten("u")),
            'a' => answer(&ten("a")),
            'c' => calls("bash", json!({"command": "x"})),
            'r' => result(&ten("r")),
            'b' => message(json!({
                "role": "bashExecution", "command": ten("b"), "output": "", "cancelled": false,
                "truncated": false, "timestamp": 1,
            })),
            'l' => {
                session.append_thinking_level_change("high").unwrap();
                continue;
            }
            'x' => {
                session
                    .append_custom_message(
                        "x",
                        &pi_ai::message::UserContent::Text(ten("x")),
                        true,
                        None,
                    )
                    .unwrap();
                continue;
            }
            other => panic!("{other}"),
        };
        session.append_message(&message).unwrap();
    }
}

fn cut(roles: &str, keep: u64) -> (usize, Option<usize>) {
    let mut session = session();
    append_messages(&mut session, roles);
    let Cut {
        first_kept,
        turn_start,
    } = find_cut(&session.branch(None), 0, keep);
    (first_kept, turn_start)
}

fn settings(keep_recent_tokens: u64) -> CompactionSettings {
    CompactionSettings {
        enabled: true,
        reserve_tokens: 1000,
        keep_recent_tokens,
    }
}

fn prepared(session: &Session, keep: u64) -> Result<Preparation, NothingToCompact> {
    let context = session.build_context().messages;
    prepare(&session.branch(None), &context, settings(keep))
}

fn texts(messages: &[Arc<AgentMessage>]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match &**message {
            AgentMessage::User(user) => user.content.text(),
            AgentMessage::Assistant(answer) => answer.texts().collect(),
            other => other.role().to_owned(),
        })
        .collect()
}

#[test]
fn four_characters_are_a_token_as_javascript_counts_them() {
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "12345"});
    let cases = [
        (user("1234"), 1),
        (user("12345"), 2),
        // Each character has two UTF-16 units.
        (user("🦀🦀🦀"), 2),
        (answer(""), 0),
        (calls("read", json!({"path": "a", "n": 1.0})), 6),
        (
            message(json!({"role": "user", "content": [image, text], "timestamp": 1})),
            2,
        ),
        (
            message(json!({
                "role": "custom", "customType": "c", "content": [image, text], "display": true,
                "timestamp": 1,
            })),
            1202,
        ),
    ];
    for (message, tokens) in cases {
        assert_eq!(estimate(&message), tokens, "{message:?}");
    }
    assert_eq!(
        js_json(&json!({"a": [1.0, 1.5, -0.0, 1e300, "é"]})),
        r#"{"a":[1,1.5,0,1e+300,"é"]}"#
    );
}

#[test]
fn provider_count_is_not_estimated() {
    let estimated = |messages: &[AgentMessage]| {
        let messages: Vec<_> = messages.iter().cloned().map(Arc::new).collect();
        let ContextEstimate { tokens, counted } = estimate_context(&messages);
        (tokens, counted)
    };
    let counted = assistant(json!([]), "stop", 1000);
    let failed = assistant(json!([{"type": "text", "text": "12345678"}]), "error", 7);
    assert_eq!(estimated(&[user("1234"), answer("1234")][..1]), (1, None));
    assert_eq!(
        estimated(&[user("1234"), counted.clone(), user("12345")]),
        (1002, Some(1))
    );
    assert_eq!(estimated(&[counted, user("1234"), failed]), (1003, Some(0)));
}

#[test]
fn only_a_known_window_can_be_outgrown() {
    let settings = settings(0);
    assert!(exceeds_window(4001, 5000, settings));
    assert!(!exceeds_window(4000, 5000, settings));
    assert!(!exceeds_window(4000, 0, settings));
    // A reserve that is larger than the window leaves nothing.
    assert!(exceeds_window(1, 500, settings));
}

/// The expected cuts are those of the original.
#[test]
fn a_conversation_is_cut_where_enough_of_it_follows() {
    let cases = [
        // Cut between turns.
        ("uauaua", 20, (4, None)),
        ("uauaua", 11, (4, None)),
        // Cut within a turn.
        ("uauaua", 10, (5, Some(4))),
        ("uauaua", 30, (3, Some(2))),
        // Never cut at a tool result.
        ("uacrcra", 20, (6, Some(0))),
        ("uacrcra", 25, (4, Some(0))),
        // Everything is kept.
        ("uaua", 1000, (0, None)),
        ("lluaua", 1000, (0, None)),
        // Settings before the cut are kept with it, which makes it a split turn.
        ("uallua", 20, (2, Some(0))),
        // Turns that do not begin with a user message.
        ("uaba", 20, (2, Some(2))),
        ("uaxa", 10, (2, Some(2))),
        ("uaba", 10, (3, Some(2))),
        // Tool results at the end, without a later cut point.
        ("uacr", 5, (2, Some(0))),
        ("", 10, (0, None)),
    ];
    for (roles, keep, expected) in cases {
        assert_eq!(cut(roles, keep), expected, "{roles} {keep}");
    }
}

#[test]
fn there_may_be_nothing_to_do() {
    let mut session = session();
    session.append_model_change("p", "m").unwrap();
    assert_eq!(prepared(&session, 10), Err(NothingToCompact::TooSmall));
    append_messages(&mut session, "ua");
    let kept = session.branch(None)[1].id.clone();
    // Everything would be kept.
    assert_eq!(prepared(&session, 1000), Err(NothingToCompact::TooSmall));
    session
        .append_compaction("s", &kept, 1, None, None)
        .unwrap();
    assert_eq!(prepared(&session, 10), Err(NothingToCompact::Already));
}

#[test]
fn a_turn_that_is_too_long_is_split() {
    let mut session = session();
    append_messages(&mut session, "uaucrcra");
    let entries = session.branch(None);
    let preparation = prepared(&session, 15).unwrap();
    assert!(preparation.is_split_turn);
    assert_eq!(preparation.first_kept_entry_id, entries[7].id);
    assert_eq!(preparation.messages_to_summarize.len(), 2);
    assert_eq!(preparation.turn_prefix_messages.len(), 5);
}

#[test]
fn second_compaction_continues_from_the_first() {
    let mut session = session();
    session.append_message(&user("one")).unwrap();
    session
        .append_message(&calls("read", json!({"path": "new"})))
        .unwrap();
    let kept = session.append_message(&user("kept")).unwrap().id.clone();
    session
        .append_message(&calls("edit", json!({"path": "kept"})))
        .unwrap();
    let details = json!({"readFiles": ["old", "kept"], "modifiedFiles": ["changed"]});
    session
        .append_compaction("first", &kept, 1, Some(&details), Some(false))
        .unwrap();
    session.append_message(&user("two")).unwrap();
    session.append_message(&answer("three")).unwrap();
    session.append_message(&user("four")).unwrap();
    let preparation = prepared(&session, 1).unwrap();
    assert_eq!(preparation.previous_summary.as_deref(), Some("first"));
    assert_eq!(
        texts(&preparation.messages_to_summarize),
        ["kept", "", "two", "three"]
    );
    // The first summary mentions `new`; an extension wrote it, or it lost the file.
    let lists = preparation.file_ops.lists();
    assert_eq!(lists.read_files, ["old"]);
    assert_eq!(lists.modified_files, ["changed", "kept"]);
}

#[test]
fn details_of_extensions_are_ignored() {
    let mut session = session();
    let kept = session.append_message(&user("kept")).unwrap().id.clone();
    let details = json!({"readFiles": ["theirs"]});
    session
        .append_compaction("first", &kept, 1, Some(&details), Some(true))
        .unwrap();
    session.append_message(&user("two")).unwrap();
    let lists = prepared(&session, 1).unwrap().file_ops.lists();
    assert_eq!(lists.read_files, [""; 0]);
}

#[test]
fn a_conversation_is_one_text() {
    let thinking = json!([
        {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a", "limit": 2.0}},
        {"type": "toolCall", "id": "2", "name": "ls", "arguments": {}},
        {"type": "text", "text": "one"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "two"},
    ]);
    let messages = [
        user("do it"),
        assistant(thinking, "toolUse", 0),
        result(&format!("é€{}", "🦀".repeat(1500))),
        result(""),
    ];
    let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
    let cut = format!("é€{}", "🦀".repeat(999));
    assert_eq!(
        super::serialize::conversation(&messages),
        format!(
            "[User]: do it\n\n[Assistant thinking]: hm\n\n[Assistant]: one\ntwo\n\n\
             [Assistant tool calls]: read(path=\"a\", limit=2); ls()\n\n\
             [Tool result]: {cut}\n\n[... 1002 more characters truncated]"
        )
    );
}

/// An API with scripted answers that records its requests.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<AgentMessage>>,
    requests: Mutex<Vec<Request>>,
}

impl Api for Scripted {
    fn stream(&self, request: Request) -> AssistantStream {
        let (sender, stream) = AssistantStream::channel();
        self.requests.lock().push(request);
        let AgentMessage::Assistant(answer) = self.answers.lock().remove(0) else {
            panic!("an answer");
        };
        sender.try_send(StreamItem::Done(Arc::new(answer))).unwrap();
        stream
    }
}

fn scripted(answers: Vec<AgentMessage>) -> (Arc<Scripted>, Summarizer) {
    let api = Arc::new(Scripted {
        answers: Mutex::new(answers),
        requests: Mutex::default(),
    });
    let model: Model = serde_json::from_value(json!({
        "id": "m", "name": "M", "api": "a", "provider": "p", "baseUrl": "", "reasoning": true,
        "input": ["text"], "cost": {}, "contextWindow": 1010, "maxTokens": 700,
    }))
    .unwrap();
    let summarizer = Summarizer {
        model: Arc::new(model),
        api: api.clone(),
        api_key: Some("k".into()),
        headers: Default::default(),
        max_retry_delay_ms: None,
        thinking: None,
        session_id: None,
    };
    (api, summarizer)
}

fn prompt_of(request: &Request) -> String {
    let [Message::User(user)] = &request.messages[..] else {
        panic!("one message");
    };
    user.content.text()
}

async fn summary(
    session: &Session,
    keep: u64,
    focus: Option<&str>,
    answers: Vec<AgentMessage>,
) -> (Vec<Request>, Result<Compacted, SummaryError>) {
    let preparation = prepared(session, keep).unwrap();
    let (api, summarizer) = scripted(answers);
    let cancel = CancellationToken::new();
    let compacted = summarize(&preparation, focus, &summarizer, &cancel).await;
    (std::mem::take(&mut *api.requests.lock()), compacted)
}

#[tokio::test]
async fn a_model_is_asked_for_the_summary() {
    let mut session = session();
    for (name, path) in [("write", "w"), ("read", "r")] {
        session
            .append_message(&calls(name, json!({"path": path})))
            .unwrap();
        session.append_message(&result("")).unwrap();
    }
    session.append_message(&user("kept")).unwrap();
    let (requests, compacted) = summary(&session, 1, Some("tests"), vec![answer("sum")]).await;
    let kept = session.branch(None)[4].id.clone();
    assert_eq!(
        compacted.unwrap(),
        Compacted {
            summary: "sum\n\n<read-files>\nr\n</read-files>\n\n<modified-files>\nw\n\
                      </modified-files>"
                .into(),
            first_kept_entry_id: kept,
            tokens_before: 1,
            estimated_tokens_after: None,
            details: Some(json!({"readFiles": ["r"], "modifiedFiles": ["w"]})),
        }
    );
    let prompt = prompt_of(&requests[0]);
    assert!(prompt.starts_with(
        "<conversation>\n[Assistant tool calls]: write(path=\"w\")\n\n\
         [Assistant tool calls]: read(path=\"r\")\n</conversation>\n\n"
    ));
    assert!(!prompt.contains("previous-summary"), "{prompt}");
    assert!(prompt.ends_with("\n\nAdditional focus: tests"), "{prompt}");
    let options = &requests[0].options;
    // The settings allow 800 tokens, the model only 700.
    assert_eq!(options.max_tokens, Some(700));
    assert_eq!(options.reasoning, Some(ThinkingLevel::High));
}

#[tokio::test]
async fn an_earlier_summary_is_shown() {
    let mut session = session();
    let kept = session.append_message(&user("kept")).unwrap().id.clone();
    session
        .append_compaction("first", &kept, 1, None, None)
        .unwrap();
    session.append_message(&user("two")).unwrap();
    let (requests, _) = summary(&session, 1, None, vec![answer("sum")]).await;
    let prompt = prompt_of(&requests[0]);
    assert!(prompt.contains(
        "[User]: kept\n</conversation>\n\n<previous-summary>\nfirst\n</previous-summary>\n\n"
    ));
}

#[tokio::test]
async fn a_split_turn_has_two_summaries() {
    let mut session = session();
    append_messages(&mut session, "uaucrcra");
    let answers = vec![answer("history"), answer("prefix")];
    let (requests, compacted) = summary(&session, 15, None, answers).await;
    assert_eq!(
        compacted.unwrap().summary,
        "history\n\n---\n\n**Turn Context (split turn):**\n\nprefix"
    );
    let limits = requests.iter().map(|request| request.options.max_tokens);
    assert_eq!(limits.collect::<Vec<_>>(), [Some(700), Some(500)]);
    assert_eq!(requests[1].options.reasoning, None);
}

#[tokio::test]
async fn a_split_first_turn_has_no_history() {
    let mut session = session();
    append_messages(&mut session, "ucrcra");
    let (requests, compacted) = summary(&session, 15, None, vec![answer("prefix")]).await;
    assert_eq!(requests.len(), 1);
    let summary = compacted.unwrap().summary;
    assert!(
        summary.starts_with("No prior history.\n\n---\n\n"),
        "{summary}"
    );
}

#[tokio::test]
async fn empty_summary_is_an_error() {
    let mut session = session();
    append_messages(&mut session, "uaua");
    let failed = |answer: AgentMessage| async {
        summary(&session, 20, None, vec![answer])
            .await
            .1
            .unwrap_err()
    };
    let refused = assistant(json!([]), "error", 0);
    let AgentMessage::Assistant(mut refused) = refused else {
        panic!()
    };
    refused.error_message = Some("no".into());
    let because = |why: &str| SummaryError::Model {
        what: "Summarization failed".into(),
        why: why.into(),
    };
    let refused = failed(AgentMessage::Assistant(refused)).await;
    assert_eq!(refused, because("no"));
    assert_eq!(refused.to_string(), "Summarization failed: no");
    assert_eq!(
        failed(answer(" \n")).await,
        because("the model answered without a text")
    );
    let aborted = assistant(json!([{"type": "text", "text": "half"}]), "aborted", 0);
    assert_eq!(failed(aborted).await, SummaryError::Cancelled);
}

fn ids(entries: &[Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn branch_part_begins_after_common_ancestor() {
    let mut session = session();
    append_messages(&mut session, "uaua");
    let old = session.branch(None);
    session.set_leaf(Some(&old[1].id)).unwrap();
    append_messages(&mut session, "u");
    let new = session.branch(None);
    let part = branch_part(&old, &new);
    assert_eq!(ids(&part.entries), ids(&old[2..]));
    assert_eq!(part.common_ancestor.as_deref(), Some(&*old[1].id));
    // Back to an entry of the same path.
    let part = branch_part(&old, &old[..2]);
    assert_eq!(ids(&part.entries), ids(&old[2..]));
    let part = branch_part(&[], &old);
    assert_eq!((part.entries.len(), part.common_ancestor), (0, None));
}

async fn branch(session: &Session, request: BranchRequest) -> (String, String) {
    let (api, summarizer) = scripted(vec![answer("sum")]);
    let cancel = CancellationToken::new();
    let entries = session.branch(None);
    let (summary, _) = summarize_branch(&entries, &request, &summarizer, &cancel)
        .await
        .unwrap();
    let requests = api.requests.lock();
    (summary, requests.first().map(prompt_of).unwrap_or_default())
}

#[tokio::test]
async fn branch_summary_has_as_much_as_fits() {
    let mut session = session();
    let details = json!({"readFiles": ["far"], "modifiedFiles": []});
    session
        .branch_with_summary(None, "earlier", Some(&details), Some(false))
        .unwrap();
    session.append_message(&user("left out")).unwrap();
    session
        .append_message(&calls("edit", json!({"path": "e"})))
        .unwrap();
    session.append_message(&result("long")).unwrap();
    session.append_message(&user("the last")).unwrap();
    // Six tokens of the window are left.
    let request = BranchRequest {
        reserve_tokens: 1004,
        ..BranchRequest::default()
    };
    let (summary, prompt) = branch(&session, request).await;
    let conversation = "<conversation>\n[Assistant tool calls]: edit(path=\"e\")\n\n\
                        [User]: the last\n</conversation>\n\n";
    assert!(prompt.starts_with(conversation), "{prompt}");
    assert_eq!(
        summary,
        "The user explored a different conversation branch before returning here.\n\
         Summary of that exploration:\n\nsum\n\n<read-files>\nfar\n</read-files>\n\n\
         <modified-files>\ne\n</modified-files>"
    );
}

#[tokio::test]
async fn instructions_are_added_or_replace_default_ones() {
    let mut session = session();
    append_messages(&mut session, "ua");
    let request = |replace_instructions| BranchRequest {
        instructions: Some("only the bugs".into()),
        replace_instructions,
        reserve_tokens: 0,
    };
    let (_, prompt) = branch(&session, request(false)).await;
    assert!(prompt.contains("## Goal"));
    assert!(prompt.ends_with("\n\nAdditional focus: only the bugs"));
    let (_, prompt) = branch(&session, request(true)).await;
    assert!(
        prompt.ends_with("</conversation>\n\nonly the bugs"),
        "{prompt}"
    );
}

#[tokio::test]
async fn branch_without_messages_needs_no_model() {
    let mut session = session();
    append_messages(&mut session, "l");
    let (summary, prompt) = branch(&session, BranchRequest::default()).await;
    assert_eq!((&*summary, &*prompt), ("No content to summarize", ""));
}
