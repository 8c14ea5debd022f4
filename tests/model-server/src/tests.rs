//! Tests of the server over a real connection.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

async fn send_request(server: &ModelServer, path: &str) -> TcpStream {
    let body =
        json!({"model": MODEL, "stream": true, "max_tokens": 9, "messages": [], "input": []});
    let body = body.to_string();
    let host = server.url().replace("http://", "");
    let mut socket = TcpStream::connect(&host).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nX-Api-Key: k\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

async fn whole(socket: TcpStream) -> String {
    String::from_utf8(bytes(socket).await).unwrap()
}

async fn bytes(mut socket: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn answers_in_order_and_in_the_api_of_the_path() {
    let server = ModelServer::start().await;
    server.push(Answer::text("one"));
    server.push(Answer::error(529, "busy").with_header("retry-after", "0"));
    let first = whole(send_request(&server, "/v1/chat/completions").await).await;
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"),
        "{first}"
    );
    assert!(first.contains(r#""delta":{"content":"one"}"#), "{first}");
    let second = whole(send_request(&server, "/v1/messages").await).await;
    assert!(second.starts_with("HTTP/1.1 529 "), "{second}");
    assert!(second.contains("retry-after: 0\r\n"), "{second}");
    assert!(
        second.contains(r#""error":{"type":"overloaded_error","message":"busy"}"#),
        "{second}"
    );
    let third = whole(send_request(&server, "/v1/responses").await).await;
    assert!(third.starts_with("HTTP/1.1 400 "), "{third}");

    let received = server.requests();
    let seen: Vec<_> = received.iter().map(|request| request.api).collect();
    assert_eq!(
        seen,
        [
            Api::OpenAiCompletions,
            Api::AnthropicMessages,
            Api::OpenAiResponses
        ]
    );
    assert_eq!(received[0].headers["x-api-key"], "k");
    assert_eq!(received[0].body["model"], MODEL);
    assert_eq!(server.unasked(), 0);
}

#[tokio::test]
async fn a_cut_answer_has_no_proper_end() {
    let server = ModelServer::start().await;
    server.push(Answer::deltas(3, "x").cut_after(2));
    let answer = whole(send_request(&server, "/v1/messages").await).await;
    assert_eq!(answer.matches(r#""text":"x""#).count(), 2, "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn notices_a_client_that_hangs_up_on_a_stalled_answer() {
    let server = ModelServer::start().await;
    server.push(Answer::text("never more").stall_after(1));
    let mut socket = send_request(&server, "/v1/responses").await;
    server.received(1).await;
    let mut some = [0; 64];
    socket.read_exact(&mut some).await.unwrap();
    drop(socket);
    server.hung_up(1).await;
}

#[tokio::test]
async fn pieces_put_together_are_the_whole() {
    let server = ModelServer::start().await;
    for answer in [Answer::text("é🦀"), Answer::text("é🦀").in_pieces_of(1)] {
        server.push(answer);
    }
    let mut events = Vec::new();
    for _ in 0..2 {
        let answer = bytes(send_request(&server, "/v1/messages").await).await;
        let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
        let body = unchunk(&answer[head.unwrap() + 4..]);
        events.push(body.replace("msg_2", "msg_1"));
    }
    assert_eq!(events[0], events[1]);
}

/// Decodes the chunked encoding; pieces may end inside a character.
fn unchunk(mut rest: &[u8]) -> String {
    let mut text = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\r') {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        text.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    String::from_utf8(text).unwrap()
}
