//! The colours of a theme for the page: what terminals show a session in, browsers
//! show it in as well.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::resources::themes::{Color, Theme};

/// A style sheet that goes over the page's own, and its hash for the page's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageColors {
    pub(super) style: String,
    pub(super) hash: String,
}

/// Variables of the page (`page/src/layout.css`), and the theme's names for them.
const COLORS: [(&str, &str); 18] = [
    ("text", "text"),
    ("soft", "muted"),
    ("faint", "dim"),
    ("line", "borderMuted"),
    ("accent", "accent"),
    ("user", "userMessageBg"),
    ("user-line", "border"),
    ("extension", "customMessageBg"),
    ("extension-line", "customMessageLabel"),
    ("summary-line", "warning"),
    ("good", "success"),
    ("bad", "error"),
    ("added", "toolSuccessBg"),
    ("removed", "toolErrorBg"),
    ("keyword", "syntaxKeyword"),
    ("string", "syntaxString"),
    ("number", "syntaxNumber"),
    ("name", "syntaxFunction"),
];

type Rgb = [u8; 3];

const WHITE: Rgb = [255; 3];
const BLACK: Rgb = [0; 3];

impl PageColors {
    pub fn of(theme: &Theme) -> Self {
        let color = |token: &str| theme.colors.get(token).and_then(|color| rgb(*color));
        // Terminals' own background is not known; what users say is on one that is.
        let base = color("userMessageBg").unwrap_or([52, 53, 65]);
        let is_light = brightness(base) > 127.0;
        let (page, card, sunken) = match is_light {
            true => (
                mix(base, WHITE, 0.3),
                mix(base, WHITE, 0.7),
                mix(base, WHITE, 0.5),
            ),
            false => (
                mix(base, BLACK, 0.6),
                mix(base, BLACK, 0.45),
                mix(base, BLACK, 0.55),
            ),
        };
        let own = |name: &str, otherwise: Rgb| {
            let chosen = theme.export.get(name).and_then(|color| rgb(*color));
            chosen.unwrap_or(otherwise)
        };
        let backgrounds = [
            ("page", own("pageBg", page)),
            ("card", own("cardBg", card)),
            ("sunken", sunken),
            ("summary", own("infoBg", sunken)),
        ];
        let text = if is_light { BLACK } else { [229, 229, 231] };
        let others = COLORS.map(|(variable, token)| (variable, color(token).unwrap_or(text)));
        let mut style = format!(
            ":root{{color-scheme:only {}",
            if is_light { "light" } else { "dark" }
        );
        for (variable, [red, green, blue]) in backgrounds.into_iter().chain(others) {
            _ = write!(style, ";--{variable}:#{red:02x}{green:02x}{blue:02x}");
        }
        // There is nothing to choose from.
        style += "}#theme{display:none}";
        let hash = format!("sha256-{}", STANDARD.encode(Sha256::digest(&style)));
        Self { style, hash }
    }
}

fn brightness([red, green, blue]: Rgb) -> f64 {
    0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue)
}

fn mix(color: Rgb, with: Rgb, share: f64) -> Rgb {
    std::array::from_fn(|i| {
        let mixed = f64::from(color[i]) * (1.0 - share) + f64::from(with[i]) * share;
        mixed.round() as u8
    })
}

/// Nothing for the terminal's own colour.
fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Index(index) => Some(indexed(index)),
    }
}

/// The colours that xterm numbers: 16 basic ones, a cube, grays.
fn indexed(index: u8) -> Rgb {
    match index {
        7 => [192; 3],
        8 => [128; 3],
        0..=15 => {
            let level = if index < 8 { 128 } else { 255 };
            std::array::from_fn(|i| if index & (1 << i) == 0 { 0 } else { level })
        }
        16..=231 => {
            let index = index - 16;
            [index / 36, index / 6 % 6, index % 6].map(|step| match step {
                0 => 0,
                step => 55 + step * 40,
            })
        }
        232..=255 => [8 + (index - 232) * 10; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_those_of_xterm() {
        let found = [1, 7, 8, 9, 12, 16, 21, 110, 231, 232, 255].map(indexed);
        let wanted = [
            [128, 0, 0],
            [192, 192, 192],
            [128, 128, 128],
            [255, 0, 0],
            [0, 0, 255],
            [0, 0, 0],
            [0, 0, 255],
            [135, 175, 215],
            [255, 255, 255],
            [8, 8, 8],
            [238, 238, 238],
        ];
        assert_eq!(found, wanted);
    }
}
