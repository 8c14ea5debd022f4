//! Checks to which call each piece of a stream belongs, by index, id and name.

use serde_json::{Value, json};

use super::{chunk, finish, stream_of};
use crate::message::AssistantBlock;
use crate::testing::call;

/// The original starts a new call for each change of id and appends pieces without an id to the
/// last call.
#[tokio::test]
async fn the_pieces_of_several_calls_may_be_mixed() {
    let piece = |index: u64, id: Value, name: &str, arguments: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    let null = || Value::Null;
    let (message, _) = stream_of(&[
        chunk(json!({"tool_calls": [piece(0, json!("t1"), "a", "{\"x\":"), piece(1, json!("t2"), "b", "")]})),
        chunk(json!({"tool_calls": [piece(1, null(), "", "{\"y\":"), piece(0, null(), "", "1}")]})),
        chunk(json!({"tool_calls": [piece(1, null(), "", "2}")]})),
        finish("tool_calls"),
    ])
    .await;
    assert_eq!(
        message.content,
        [
            call("t1", "a", json!({"x": 1})),
            call("t2", "b", json!({"y": 2}))
        ]
    );
}

#[tokio::test]
async fn servers_that_number_every_call_0_or_none() {
    for index in [json!(0), Value::Null] {
        let piece = |id: &str, arguments: &str| json!({"tool_calls": [{"index": index, "id": id, "function": {"name": id, "arguments": arguments}}]});
        let more = json!({"tool_calls": [{"index": index, "function": {"arguments": "2}"}}]});
        let (message, _) = stream_of(&[
            chunk(piece("t1", "{\"x\":1}")),
            chunk(piece("t2", "{\"y\":")),
            chunk(more),
            finish("stop"),
        ])
        .await;
        assert_eq!(
            message.content,
            [
                call("t1", "t1", json!({"x": 1})),
                call("t2", "t2", json!({"y": 2}))
            ]
        );
    }
}

/// Makes a piece of a call; members that are null are left out.
fn piece(index: Value, id: Value, name: Value, arguments: Value) -> Value {
    let mut function = json!({"name": name, "arguments": arguments});
    let mut piece = json!({"index": index, "id": id});
    for object in [&mut function, &mut piece] {
        object
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
    }
    piece["function"] = function;
    piece
}

async fn calls_of(lists: &[Vec<Value>]) -> Vec<AssistantBlock> {
    let mut events: Vec<Value> = lists
        .iter()
        .map(|list| chunk(json!({"tool_calls": list})))
        .collect();
    events.push(finish("tool_calls"));
    stream_of(&events).await.0.content
}

#[tokio::test]
async fn pieces_with_ids_of_their_own_belong_to_the_call_before() {
    let null = Value::Null;
    for index in [json!(0), null.clone()] {
        for name in [null.clone(), json!(""), json!("bash")] {
            let piece = |id: &str, name: &Value, arguments: &str| {
                vec![piece(
                    index.clone(),
                    json!(id),
                    name.clone(),
                    json!(arguments),
                )]
            };
            let content = calls_of(&[
                piece("t1", &json!("bash"), ""),
                piece("t2", &name, "{\"comm"),
                piece("t3", &name, "and\":\"ls"),
                piece("t4", &name, "\"}"),
                // This is another call, although the server gives the same number.
                piece("t5", &json!("bash"), "{\"command\":\"pwd\"}"),
                piece("t6", &json!("read"), "{\"path\":\"a\"}"),
            ])
            .await;
            let expected = [
                call("t1", "bash", json!({"command": "ls"})),
                call("t5", "bash", json!({"command": "pwd"})),
                call("t6", "read", json!({"path": "a"})),
            ];
            assert_eq!(content, expected, "{index} {name}");
        }
    }
}

/// The first of two calls of one tool was lost.
#[tokio::test]
async fn calls_of_one_tool_without_index_stay_separate() {
    let whole =
        |id: &str, arguments: &str| piece(Value::Null, json!(id), json!("ls"), json!(arguments));
    let more =
        |id: &str, arguments: &str| piece(Value::Null, json!(id), Value::Null, json!(arguments));
    let root = "{\"path\":\"/\"}";
    for first in ["{}", "", root] {
        let calls = [whole("a", first), whole("b", root)];
        let arguments = match first {
            "" => json!({}),
            text => serde_json::from_str(text).unwrap(),
        };
        let expected = [
            call("a", "ls", arguments),
            call("b", "ls", json!({"path": "/"})),
        ];
        assert_eq!(calls_of(&[calls.to_vec()]).await, expected, "{first}");
        let separate = calls.map(|call| vec![call]);
        assert_eq!(calls_of(&separate).await, expected, "{first}");
    }
    let content = calls_of(&[
        vec![whole("a", "{\"path\":")],
        vec![whole("b", "{\"path\":")],
        vec![more("a", "\"one\"}")],
        vec![more("b", "\"two\"}")],
    ])
    .await;
    let expected = [
        call("a", "ls", json!({"path": "one"})),
        call("b", "ls", json!({"path": "two"})),
    ];
    assert_eq!(content, expected);
}

#[tokio::test]
async fn an_empty_object_before_the_arguments_is_a_placeholder() {
    let null = || Value::Null;
    for id in [json!("t1"), null()] {
        let content = calls_of(&[
            vec![piece(json!(0), json!("t1"), json!("bash"), json!("{}"))],
            vec![piece(json!(0), id.clone(), null(), json!("{\"command\":"))],
            vec![piece(json!(0), id, null(), json!("\"ls\"}"))],
            vec![piece(json!(1), json!("t2"), json!("ls"), json!("{}"))],
        ])
        .await;
        let expected = [
            call("t1", "bash", json!({"command": "ls"})),
            call("t2", "ls", json!({})),
        ];
        assert_eq!(content, expected);
    }
}

#[tokio::test]
async fn calls_without_index_stay_separate() {
    let null = || Value::Null;
    let text = |text: &str| json!(text);
    let first = |index: Value, id: &str, arguments: &str| {
        piece(index, json!(id), json!(id), text(arguments))
    };
    let more = |index: Value, arguments: &str| piece(index, null(), null(), text(arguments));
    for (one, two) in [(null(), null()), (json!(0), null()), (null(), json!(0))] {
        let content = calls_of(&[
            vec![
                first(one.clone(), "t1", "{\"x\":"),
                first(two.clone(), "t2", "{\"y\":"),
            ],
            vec![more(one.clone(), "[1"), more(two.clone(), "[2")],
            vec![more(one.clone(), "]}"), more(two.clone(), "]}")],
        ])
        .await;
        let expected = [
            call("t1", "t1", json!({"x": [1]})),
            call("t2", "t2", json!({"y": [2]})),
        ];
        assert_eq!(content, expected, "{one} {two}");
    }
}
