//! Images of a prompt that are damaged, are no images, or have a type that no model accepts.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, Rgb, RgbImage};
use model_server::Answer;
use serde_json::{Value, json};

use crate::support::{command, idle, message_end, prompt, text_of, with_extension};

fn picture(width: u32, format: ImageFormat) -> String {
    let mut bytes = Cursor::new(Vec::new());
    let pixels = RgbImage::from_pixel(width, 2, Rgb([1, 2, 3]));
    pixels.write_to(&mut bytes, format).unwrap();
    STANDARD.encode(bytes.into_inner())
}

fn image(data: &str, mime_type: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": mime_type})
}

fn images_of(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().unwrap();
    let images = blocks.iter().filter(|block| block["type"] == "image");
    images.cloned().collect()
}

#[tokio::test]
async fn an_invalid_image_is_replaced_by_a_note() {
    let (server, _home, mut rpc) = idle().await;
    let jpeg = picture(2, ImageFormat::Jpeg);
    let png = picture(2, ImageFormat::Png);
    let mut look = prompt("look");
    look["images"] = json!([
        image(&STANDARD.encode("%PDF-1.7"), "application/pdf"),
        image("", "image/png"),
        image(&png[..80], "image/png"),
        image(&format!("data:image/png;base64,{png}"), "image/png"),
        image(&STANDARD.encode("<svg xmlns='x'/>"), "image/svg+xml"),
        image(&jpeg, "image/jpg"),
    ]);
    server.push(Answer::text("A dot."));
    rpc.ok(look).await;
    let user = rpc.wait("the prompt", message_end("user")).await;
    let text = text_of(&user["message"]);
    assert!(
        text.starts_with("look\n\n[Image omitted: it is a PDF"),
        "{text}"
    );
    assert_eq!(text.matches("[Image omitted: ").count(), 5, "{text}");
    assert_eq!(images_of(&user["message"]), [image(&jpeg, "image/jpeg")]);
    rpc.event("agent_end").await;
    let body = server.last_request().body.to_string();
    assert_eq!(body.matches("\"type\":\"image\"").count(), 1, "{body}");
    assert!(body.contains("\"media_type\":\"image/jpeg\"") && body.contains(&jpeg));
}

#[tokio::test]
async fn images_of_queued_messages_are_resized() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("begin")).await;
    server.received(1).await;
    let images = json!([
        image(&picture(2, ImageFormat::Bmp), "image/bmp"),
        image(&picture(4000, ImageFormat::Png), "image/png"),
    ]);
    rpc.ok(json!({"type": "follow_up", "message": "later", "images": images}))
        .await;
    server.push(Answer::text("Dots."));
    rpc.ok(command("abort")).await;
    rpc.ok(prompt("now")).await;
    let is_later = |event: &Value| {
        message_end("user")(event) && text_of(&event["message"]).starts_with("later")
    };
    server.push(Answer::text("More dots."));
    let later = rpc.wait("what was queued", is_later).await;
    assert_eq!(
        text_of(&later["message"]),
        "later\n\n[Image converted from image/bmp to image/png.]\n[Image: original 4000x2, \
         displayed at 2000x1. Multiply coordinates by 2.00 to map to original image.]"
    );
    let images = images_of(&later["message"]);
    assert!(images.len() == 2 && images.iter().all(|image| image["mimeType"] == "image/png"));
}

#[tokio::test]
async fn images_of_extensions_are_checked() {
    let source = r#"export default (pi) => pi.registerCommand("show", { handler: async () => {
        const content = [
            { type: "text", text: "look" },
            { type: "image", data: "bm8gcGljdHVyZQ==", mimeType: "image/png" },
        ];
        pi.sendMessage({ customType: "shown", content, display: true });
        pi.sendUserMessage(content);
    } });"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    server.push(Answer::text("Nothing."));
    rpc.ok(prompt("/show")).await;
    let shown = rpc.wait("its message", message_end("custom")).await;
    let note = "[Image omitted: it is no picture, although its type is \"image/png\", and models \
                take PNG, JPEG, GIF and WebP.]";
    let content = json!([{"type": "text", "text": "look"}, {"type": "text", "text": note}]);
    assert_eq!(shown["message"]["content"], content);
    let user = rpc.wait("the prompt", message_end("user")).await;
    assert_eq!(text_of(&user["message"]), format!("look\n\n{note}"));
    assert_eq!(images_of(&user["message"]), Vec::<Value>::new());
}
