//! Images and documents of a prompt, in the three forms that clients send.

use serde::Deserialize;

use pi_ai::message::ImageContent;

/// An image as `{"type":"image","data","mimeType"}`, or as Anthropic's API takes it, with a
/// `source` of type `base64`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "PictureFields")]
#[cfg_attr(test, schemars(!try_from, with = "Shape"))]
pub struct Picture(pub ImageContent);

/// The accepted forms, for the schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "used for its schema only")]
enum Shape {
    Plain(Plain),
    Sourced(Sourced),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct Plain {
    #[schemars(extend("const" = "image"))]
    r#type: Option<String>,
    /// Base64.
    data: String,
    mime_type: String,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "used for its schema only")]
struct Sourced {
    #[schemars(extend("const" = "image"))]
    r#type: Option<String>,
    source: ImageSource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PictureFields {
    r#type: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    source: Option<ImageSource>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ImageSource {
    /// Only `base64`.
    r#type: Option<String>,
    #[serde(alias = "media_type")]
    media_type: Option<String>,
    data: Option<String>,
}

impl TryFrom<PictureFields> for Picture {
    type Error = String;

    fn try_from(fields: PictureFields) -> Result<Self, String> {
        if let Some(kind) = fields.r#type.filter(|kind| kind != "image") {
            return Err(format!("a picture is of type \"image\", not \"{kind}\""));
        }
        let (data, mime_type) = match fields.source {
            None => (fields.data, fields.mime_type),
            Some(source) => match source.r#type.as_deref() {
                None | Some("base64") => (source.data, source.media_type),
                Some(other) => {
                    return Err(format!(
                        "a picture's source can only be \"base64\", not \"{other}\": pi fetches \
                         nothing from elsewhere"
                    ));
                }
            },
        };
        Ok(Self(ImageContent {
            data: data.ok_or("a picture needs `data`, in base64")?,
            mime_type: mime_type.ok_or("a picture needs a `mimeType`")?,
        }))
    }
}

/// An image or a document in the form that clients of 0.16 to 0.19 send.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// `image` or `document`.
    r#type: String,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    /// Base64.
    #[serde(default)]
    content: Option<String>,
    /// Text of a document.
    #[serde(default)]
    extracted_text: Option<String>,
}

/// Returns the text and the images of a prompt. Documents are appended to the text, as 0.16
/// to 0.19 did.
pub fn prompt_content(
    message: String,
    pictures: Option<Vec<Picture>>,
    attachments: Option<Vec<Attachment>>,
) -> Result<(String, Vec<ImageContent>), String> {
    let mut text = message;
    let mut images: Vec<ImageContent> = pictures
        .unwrap_or_default()
        .into_iter()
        .map(|picture| picture.0)
        .collect();
    for attachment in attachments.unwrap_or_default() {
        let name = attachment.file_name.unwrap_or_default();
        match (attachment.r#type.as_str(), attachment.extracted_text) {
            ("image", _) => images.push(ImageContent {
                data: attachment
                    .content
                    .ok_or("attachments: a picture needs `content`, in base64")?,
                mime_type: attachment
                    .mime_type
                    .ok_or("attachments: a picture needs a `mimeType`")?,
            }),
            (_, Some(extracted)) => {
                text.push_str(&format!("\n\n[Document: {name}]\n{extracted}"));
            }
            (kind, None) => {
                return Err(format!(
                    "attachments: {name} is of type \"{kind}\" and has no `extractedText`, so \
                     there is nothing to tell the model of it"
                ));
            }
        }
    }
    Ok((text, images))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn picture(value: serde_json::Value) -> Result<Picture, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_of_an_image_are_accepted() {
        let plain = picture(json!({"type": "image", "data": "eA==", "mimeType": "image/png"}));
        let plain = plain.unwrap();
        for media_type in ["mediaType", "media_type"] {
            let source = json!({"type": "base64", media_type: "image/png", "data": "eA=="});
            let sourced = picture(json!({"type": "image", "source": source})).unwrap();
            assert_eq!(sourced, plain);
        }
        let url = json!({"type": "image", "source": {"type": "url", "url": "http://x/"}});
        assert!(picture(url).unwrap_err().contains("\"url\""));
        assert!(
            picture(json!({"type": "image"}))
                .unwrap_err()
                .contains("data")
        );
        let video = json!({"type": "video", "data": "", "mimeType": ""});
        assert!(picture(video).unwrap_err().contains("\"video\""));
    }

    #[test]
    fn attachments_become_images_and_text() {
        let attachments = json!([
            {"id": "1", "type": "image", "fileName": "p.png", "mimeType": "image/png", "size": 1,
             "content": "eA==", "extractedText": null, "preview": null},
            {"id": "2", "type": "document", "fileName": "d.pdf", "mimeType": "application/pdf",
             "size": 9, "content": "eHg=", "extractedText": "the text"},
        ]);
        let attachments = serde_json::from_value(attachments).unwrap();
        let (text, images) = prompt_content("look".into(), None, Some(attachments)).unwrap();
        assert_eq!(text, "look\n\n[Document: d.pdf]\nthe text");
        assert_eq!(
            (images.len(), images[0].mime_type.as_str()),
            (1, "image/png")
        );
        let bare = serde_json::from_value(json!([{"type": "document", "fileName": "x"}])).unwrap();
        assert!(prompt_content(String::new(), None, Some(bare)).is_err());
    }
}
