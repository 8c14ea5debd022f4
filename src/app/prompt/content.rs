//! The content of a prompt, as the command line and the modes pass it on.

use pi_ai::message::ImageContent;

/// Text and images of one prompt of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptContent {
    pub text: String,
    pub images: Vec<ImageContent>,
}
