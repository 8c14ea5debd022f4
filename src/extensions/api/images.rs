//! Type, size and format of images, for functions of pi's package.

use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use js_runtime::HostError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bridge::{BridgeResult, parse, to_value};
use pi_tools::images::{self, ImageType, Limits};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageArgs {
    data: String,
    mime_type: String,
    max_width: Option<u32>,
    max_height: Option<u32>,
    max_bytes: Option<usize>,
    jpeg_quality: Option<u8>,
}

#[derive(Deserialize)]
struct FileArgs {
    path: PathBuf,
}

/// Detects the type of an image file from its content, as the read tool does.
pub async fn image_type(method: &str, args: &str) -> BridgeResult {
    let FileArgs { path } = parse(method, args)?;
    let read = {
        let path = path.clone();
        move || {
            let mut start = Vec::new();
            std::fs::File::open(path)?
                .take(images::SNIFF_BYTES as u64)
                .read_to_end(&mut start)?;
            std::io::Result::Ok(start)
        }
    };
    let failed = |error: &dyn std::fmt::Display| HostError::new(error.to_string());
    let start = tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&format!("{}: {error}", path.display())))?;
    Ok(json!(images::detect(&start).map(ImageType::mime)))
}

/// Resizes an image; `null` if it is not an image or cannot be made small enough.
pub async fn resize_image(method: &str, args: &str) -> BridgeResult {
    let args: ImageArgs = parse(method, args)?;
    let usual = Limits::default();
    let limits = Limits {
        width: args.max_width.unwrap_or(usual.width),
        height: args.max_height.unwrap_or(usual.height),
        base64: args.max_bytes.unwrap_or(usual.base64),
        quality: args.jpeg_quality.unwrap_or(usual.quality).clamp(1, 100),
    };
    let resized = tokio::task::spawn_blocking(move || {
        let bytes = STANDARD.decode(&args.data).ok()?;
        let kind = ImageType::of_mime(&args.mime_type)?;
        images::resize(&bytes, kind, &limits)
    });
    let resized = resized
        .await
        .map_err(|error| HostError::new(error.to_string()))?;
    Ok(resized.map_or(Value::Null, |resized| {
        json!({
            "data": resized.image.data,
            "mimeType": resized.image.mime_type,
            "originalWidth": resized.original.0,
            "originalHeight": resized.original.1,
            "width": resized.size.0,
            "height": resized.size.1,
            "wasResized": resized.was_resized,
        })
    }))
}

/// Converts an image to PNG; `null` if it is not an image.
pub async fn image_to_png(method: &str, args: &str) -> BridgeResult {
    let args: ImageArgs = parse(method, args)?;
    let made = tokio::task::spawn_blocking(move || {
        let bytes = STANDARD.decode(&args.data).ok()?;
        images::to_png(&bytes, ImageType::of_mime(&args.mime_type)?)
    });
    let made = made
        .await
        .map_err(|error| HostError::new(error.to_string()))?;
    to_value(made)
}
