//! Checks images before they join the conversation, and resizes or drops those that models reject.

use pi_agent::AgentMessage;
use pi_ai::message::{ContentBlock, ImageContent, UserContent, UserMessage, now};
use pi_session::message::CustomMessage;
use pi_tools::images::prompt_images::{self, CheckedImages};

use crate::AgentSession;

impl AgentSession {
    /// Makes a message of the user. Notes about changed or dropped images are appended to the text.
    pub(crate) async fn user_message(&self, text: &str, images: &[ImageContent]) -> UserMessage {
        if images.is_empty() {
            return UserMessage::new(text, Vec::new());
        }
        let resize = self.resizes_images();
        let originals = images.to_vec();
        let checked =
            tokio::task::spawn_blocking(move || prompt_images::check_all(&originals, resize)).await;
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

    /// Does what [`Self::user_message`] does, from code that cannot wait. Blocks the thread while
    /// images are checked.
    pub(crate) fn user_message_now(&self, text: &str, images: &[ImageContent]) -> UserMessage {
        with_images(
            text,
            prompt_images::check_all(images, self.resizes_images()),
        )
    }

    /// Makes a message of an extension, with checked images and the current time.
    pub(crate) fn custom_message(&self, mut message: CustomMessage) -> AgentMessage {
        self.check_images(&mut message.content);
        AgentMessage::Custom(CustomMessage {
            timestamp: now(),
            ..message
        })
    }

    /// Replaces images that no model accepts by notes. Blocks the thread meanwhile, so that
    /// messages keep their order.
    pub(crate) fn check_images(&self, content: &mut UserContent) {
        let UserContent::Blocks(blocks) = content else {
            return;
        };
        for block in blocks {
            let ContentBlock::Image(image) = block else {
                continue;
            };
            match prompt_images::check(image, self.resizes_images()) {
                Ok(fitted) if fitted.image == image.block => {}
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
