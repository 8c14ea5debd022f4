//! Colours of a theme for the page, so that browsers show a session like the terminal does.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use pi_resources::themes::{Color, Theme};

/// A style sheet that overrides the page's own, and its hash for the page's security policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageColors {
    pub(super) style: String,
    pub(super) hash: String,
}

/// CSS variables of the page (`page/src/layout.css`), and the theme's names for them.
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
    pub fn from_theme(theme: &Theme) -> Self {
        let color = |token: &str| theme.colors.get(token).and_then(|color| rgb(*color));
        // The terminal's background is unknown; that of user messages is known.
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
        let export_color = |name: &str, fallback: Rgb| {
            let chosen = theme.export.get(name).and_then(|color| rgb(*color));
            chosen.unwrap_or(fallback)
        };
        let backgrounds = [
            ("page", export_color("pageBg", page)),
            ("card", export_color("cardBg", card)),
            ("sunken", sunken),
            ("summary", export_color("infoBg", sunken)),
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
        // With a theme of its own the page has no choice of themes.
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

/// Converts a colour; `None` for the terminal's default colour.
fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Index(index) => Some(indexed(index)),
    }
}

/// Converts a colour number of xterm: 16 basic colours, a cube, grays.
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
    fn indexed_colors_are_those_of_xterm() {
        let found = [1, 7, 8, 9, 12, 16, 21, 110, 231, 232, 255].map(indexed);
        let expected = [
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
        assert_eq!(found, expected);
    }
}
