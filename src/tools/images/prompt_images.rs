//! Checks images that come with a prompt or a message of an extension, as base64 with a claimed
//! type. A provider that gets invalid image data refuses the request and all later ones of the
//! session, so a note replaces the image.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

use crate::images::{self, FittedImage};
use pi_ai::message::ImageContent;

const ACCEPTED_FORMATS: &str = "models take PNG, JPEG, GIF and WebP";

/// Accepts base64 like Node's decoder: without padding, and with trailing bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Images for the model, and notes about those that were left out.
#[derive(Debug, Default, PartialEq)]
pub struct CheckedImages {
    pub images: Vec<ImageContent>,
    /// One note for each image that was left out, converted or reduced.
    pub notes: Vec<String>,
}

/// Checks all images by decoding them, which takes up to a second for large ones. `resize` is the
/// setting `images.autoResize`.
pub fn check_all(images: &[ImageContent], resize: bool) -> CheckedImages {
    let mut checked = CheckedImages::default();
    for image in images {
        match check(image, resize) {
            Ok(fitted) => {
                checked.images.push(fitted.image);
                checked.notes.extend(fitted.note);
            }
            Err(note) => checked.notes.push(note),
        }
    }
    checked
}

/// Returns the image in a form that providers accept, or a note with the reason why there is
/// none.
pub fn check(image: &ImageContent, resize: bool) -> Result<FittedImage, String> {
    let omitted = |reason: &str| format!("[Image omitted: {reason}.]");
    let data = image.data.trim();
    if data.is_empty() {
        return Err(omitted("it is empty"));
    }
    if data
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("data:"))
    {
        return Err(omitted(
            "it is a data: URL, of which only the base64 text is a picture",
        ));
    }
    let Some(bytes) = decode(data) else {
        return Err(omitted("its data is not base64"));
    };
    let Some(kind) = images::detect(&bytes) else {
        let found = describe(&bytes, &image.mime_type);
        return Err(omitted(&format!("it is {found}, and {ACCEPTED_FORMATS}")));
    };
    let fitted = match resize {
        true => images::fit(&bytes, kind),
        false => images::keep_size(&bytes, kind),
    };
    fitted.ok_or_else(|| {
        omitted(&format!(
            "the {} data is damaged or incomplete, or cannot be made small enough",
            kind.mime()
        ))
    })
}

fn decode(data: &str) -> Option<Vec<u8>> {
    if let Ok(bytes) = STANDARD.decode(data) {
        return Some(bytes);
    }
    let plain: String = data
        .chars()
        .filter(|sign| !sign.is_whitespace())
        .map(|sign| match sign {
            '-' => '+',
            '_' => '/',
            sign => sign,
        })
        .collect();
    LENIENT.decode(plain).ok()
}

/// Names the format of the bytes for the user who sent them.
fn describe(bytes: &[u8], claimed: &str) -> String {
    let start = &bytes[..bytes.len().min(images::SNIFF_BYTES)];
    let has = |text: &[u8]| memchr::memmem::find(start, text).is_some();
    if start.starts_with(b"%PDF-") {
        "a PDF document".into()
    } else if has(b"<svg") {
        "an SVG drawing".into()
    } else if has(b"ftypheic") || has(b"ftypheif") || has(b"ftypmif1") {
        "an HEIC picture".into()
    } else if has(b"ftypavif") {
        "an AVIF picture".into()
    } else if start.starts_with(b"II*\0") || start.starts_with(b"MM\0*") {
        "a TIFF picture".into()
    } else {
        format!("no picture, although its type is {claimed:?}")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ::image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    fn picture(width: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let pixels = RgbImage::from_pixel(width, 2, Rgb([1, 2, 3]));
        pixels.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn sent(data: impl Into<String>, mime_type: &str) -> ImageContent {
        ImageContent {
            data: data.into(),
            mime_type: mime_type.into(),
        }
    }

    #[test]
    fn unsupported_images_become_notes() {
        let png = picture(2, ImageFormat::Png);
        let base64 = STANDARD.encode(&png);
        let cases = [
            ("", "image/png", "it is empty"),
            (" \n", "image/png", "it is empty"),
            ("data:image/png;base64,AAAA", "image/png", "data: URL"),
            ("päh", "image/png", "not base64"),
            (
                "AAAA",
                "image/png",
                "no picture, although its type is \"image/png\"",
            ),
            (
                &STANDARD.encode("%PDF-1.7 x"),
                "application/pdf",
                "a PDF document",
            ),
            (
                &STANDARD.encode("<?xml?><svg/>"),
                "image/svg+xml",
                "an SVG drawing",
            ),
            (
                &STANDARD.encode(&png[..40]),
                "image/png",
                "damaged or incomplete",
            ),
        ];
        for (data, mime_type, reason) in cases {
            for resize in [true, false] {
                let checked =
                    check_all(&[sent(data, mime_type), sent(&base64, "image/png")], resize);
                assert_eq!(checked.images, [sent(&base64, "image/png")]);
                let [note] = &checked.notes[..] else {
                    panic!("{checked:?}");
                };
                assert!(
                    note.starts_with("[Image omitted: ") && note.contains(reason),
                    "{note}"
                );
            }
        }
    }

    #[test]
    fn the_type_is_that_of_the_content() {
        let jpeg = STANDARD.encode(picture(2, ImageFormat::Jpeg));
        for claimed in ["image/jpg", "image/png", "IMAGE/JPEG", ""] {
            let checked = check_all(&[sent(&jpeg, claimed)], true);
            let expected = CheckedImages {
                images: vec![sent(&jpeg, "image/jpeg")],
                notes: vec![],
            };
            assert_eq!(checked, expected);
        }
    }

    #[test]
    fn base64_is_decoded_like_in_node() {
        let png = STANDARD.encode(picture(2, ImageFormat::Png));
        let bare = png
            .trim_end_matches('=')
            .replace('+', "-")
            .replace('/', "_");
        let wrapped: String = bare.chars().flat_map(|sign| [sign, '\n']).collect();
        for data in [&bare, &wrapped] {
            let checked = check_all(&[sent(data, "image/png")], true);
            assert_eq!(checked.images, [sent(&png, "image/png")]);
        }
    }

    #[test]
    fn large_images_shrink_and_bmp_becomes_png() {
        let wide = STANDARD.encode(picture(4000, ImageFormat::Png));
        let bmp = STANDARD.encode(picture(4, ImageFormat::Bmp));
        let images = [sent(&wide, "image/png"), sent(bmp, "image/bmp")];
        let checked = check_all(&images, true);
        assert!(checked.notes[0].contains("original 4000x2, displayed at 2000x1"));
        assert_eq!(
            checked.notes[1],
            "[Image converted from image/bmp to image/png.]"
        );
        assert!(
            checked
                .images
                .iter()
                .all(|image| image.mime_type == "image/png")
        );
        assert_eq!(check_all(&images, false).images[0].data, wide);
    }
}
