//! Pictures on their way into the conversation: only what a model takes gets there.

use crate::agent::AgentMessage;
use crate::ai::message::{ContentBlock, ImageContent, UserContent, UserMessage, now};
use crate::session::message::CustomMessage;
use crate::tools::prompt_images::{self, CheckedImages};

use super::AgentSession;

impl AgentSession {
    /// A message of the user. What was done to its pictures stands at the end of the text.
    pub(super) async fn user_message(&self, text: &str, images: &[ImageContent]) -> UserMessage {
        if images.is_empty() {
            return UserMessage::new(text, Vec::new());
        }
        let resize = self.resizes_images();
        let given = images.to_vec();
        let checked =
            tokio::task::spawn_blocking(move || prompt_images::check_all(&given, resize)).await;
        with_images(
            text,
            checked.unwrap_or_else(|error| CheckedImages {
                images: Vec::new(),
                notes: vec![format!(
                    "[Images omitted: they could not be read: {error}.]"
                )],
            }),
        )
    }

    /// [`Self::user_message`] for callers that cannot wait: the thread stands still until the
    /// pictures have been looked at.
    pub(super) fn user_message_now(&self, text: &str, images: &[ImageContent]) -> UserMessage {
        with_images(
            text,
            prompt_images::check_all(images, self.resizes_images()),
        )
    }

    /// A message that an extension adds to the conversation.
    pub(super) fn custom_message(&self, mut message: CustomMessage) -> AgentMessage {
        self.check_pictures(&mut message.content);
        AgentMessage::Custom(CustomMessage {
            timestamp: now(),
            ..message
        })
    }

    /// Pictures that no model takes become their notes. The thread stands still meanwhile,
    /// so that messages keep their order.
    pub(super) fn check_pictures(&self, content: &mut UserContent) {
        let UserContent::Blocks(blocks) = content else {
            return;
        };
        for block in blocks {
            let ContentBlock::Image(image) = block else {
                continue;
            };
            match prompt_images::check(image, self.resizes_images()) {
                Ok(fitted) if fitted.image == image.known => {}
                Ok(fitted) => *block = ContentBlock::image(fitted.image),
                Err(note) => *block = ContentBlock::text(note),
            }
        }
    }

    fn resizes_images(&self) -> bool {
        self.settings.values().images.auto_resize
    }
}

fn with_images(text: &str, checked: CheckedImages) -> UserMessage {
    let mut text = text.to_owned();
    if !checked.notes.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&checked.notes.join("\n"));
    }
    UserMessage::new(text, checked.images)
}
