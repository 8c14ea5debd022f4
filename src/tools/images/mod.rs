//! Images for models: recognises image files, and reduces images to the limits of the providers.

pub mod prompt_images;

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, RgbaImage};

use pi_ai::message::ImageContent;

/// Number of bytes that [`detect`] needs from the start of a file.
pub const SNIFF_BYTES: usize = 4100;
pub const OMITTED_TEXT: &str =
    "[Image omitted: could not be resized below the inline image size limit.]";

const MAX_SIDE: u32 = 2000;
/// Maximum size in base64, below the 5 MB that Anthropic accepts.
const MAX_BASE64: usize = 4_718_592;
const JPEG_QUALITY: u8 = 80;
const LESSER_QUALITIES: [u8; 4] = [85, 70, 55, 40];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageType {
    Jpeg,
    Png,
    Gif,
    Webp,
    /// Models do not accept it, so it is converted to PNG.
    Bmp,
}

impl ImageType {
    const ALL: [Self; 5] = [Self::Jpeg, Self::Png, Self::Gif, Self::Webp, Self::Bmp];

    pub fn mime(self) -> &'static str {
        match self {
            Self::Bmp => "image/bmp",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the type, or `None` for other types. Case and parameters (`;…`) are ignored.
    pub fn of_mime(mime: &str) -> Option<Self> {
        let name = mime.split(';').next().unwrap_or(mime);
        match name.trim().to_ascii_lowercase().as_str() {
            "image/jpg" => Some(Self::Jpeg),
            name => Self::ALL.into_iter().find(|kind| kind.mime() == name),
        }
    }

    fn format(self) -> ImageFormat {
        match self {
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Png => ImageFormat::Png,
            Self::Gif => ImageFormat::Gif,
            Self::Webp => ImageFormat::WebP,
            Self::Bmp => ImageFormat::Bmp,
        }
    }
}

/// Recognises the type by the first bytes of a file, ignoring its name.
pub fn detect(start: &[u8]) -> Option<ImageType> {
    if start.starts_with(&[0xff, 0xd8, 0xff]) {
        Some(ImageType::Jpeg)
    } else if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageType::Png)
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some(ImageType::Gif)
    } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        Some(ImageType::Webp)
    } else if is_bmp(start) {
        Some(ImageType::Bmp)
    } else {
        None
    }
}

/// Texts may begin with "BM", too, so the first two headers are checked.
fn is_bmp(start: &[u8]) -> bool {
    let number = |at: usize, len: usize| {
        let bytes = start.get(at..at + len)?;
        let number = bytes.iter().rev();
        Some(number.fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)))
    };
    let read = || {
        let (file_size, pixels_at) = (number(2, 4)?, number(10, 4)?);
        let header_size = number(14, 4)?;
        let (planes, bits) = match header_size {
            12 => (number(22, 2)?, number(24, 2)?),
            40..=124 => (number(26, 2)?, number(28, 2)?),
            _ => return None,
        };
        let has_pixels = file_size == 0 || pixels_at < file_size;
        let has_room = pixels_at >= 14 + header_size && has_pixels;
        Some(has_room && planes == 1 && [1, 4, 8, 16, 24, 32].contains(&bits))
    };
    start.starts_with(b"BM") && read() == Some(true)
}

/// Returns true if the end of the file is missing. Decoders fill missing parts of a JPEG and do
/// not check the end of a PNG; providers refuse both.
fn is_cut(bytes: &[u8], kind: ImageType) -> bool {
    match kind {
        ImageType::Png => memchr::memmem::rfind(bytes, b"IEND").is_none(),
        // A preview inside the file ends before the scans of the main image begin.
        ImageType::Jpeg => {
            let scan = memchr::memmem::rfind(bytes, b"\xff\xda");
            memchr::memmem::rfind(bytes, b"\xff\xd9") <= scan
        }
        ImageType::Webp => {
            let size = bytes.get(4..8).and_then(|size| size.try_into().ok());
            size.is_none_or(|size| u64::from(u32::from_le_bytes(size)) + 8 > bytes.len() as u64)
        }
        ImageType::Gif | ImageType::Bmp => false,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FittedImage {
    pub image: ImageContent,
    /// Text for the model about a converted format, and about the mapping of coordinates after a
    /// resize.
    pub note: Option<String>,
}

/// The limits of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub width: u32,
    pub height: u32,
    /// Maximum length of the base64 text.
    pub base64: usize,
    /// JPEG quality that is tried first.
    pub quality: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            width: MAX_SIDE,
            height: MAX_SIDE,
            base64: MAX_BASE64,
            quality: JPEG_QUALITY,
        }
    }
}

/// An image within limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Resized {
    pub image: ImageContent,
    /// Width and height.
    pub original: (u32, u32),
    pub size: (u32, u32),
    pub was_resized: bool,
}

/// Encodes the bytes without decoding the image.
pub fn encode(bytes: &[u8], kind: ImageType) -> ImageContent {
    ImageContent {
        data: STANDARD.encode(bytes),
        mime_type: kind.mime().to_owned(),
    }
}

/// Returns the image unchanged if it is within the limits, else a smaller one. `None` if it
/// cannot be decoded or reduced: with a broken image in the conversation the provider would
/// refuse every further request.
pub fn fit(bytes: &[u8], kind: ImageType) -> Option<FittedImage> {
    if is_cut(bytes, kind) {
        return None;
    }
    let resized = resize(bytes, kind, &Limits::default())?;
    let mut notes: Vec<String> = conversion_note(kind, &resized.image).into_iter().collect();
    if resized.was_resized {
        let ((width, height), (to_width, to_height)) = (resized.original, resized.size);
        let scale = f64::from(width) / f64::from(to_width);
        notes.push(format!(
            "[Image: original {width}x{height}, displayed at {to_width}x{to_height}. \
             Multiply coordinates by {scale:.2} to map to original image.]"
        ));
    }
    Some(FittedImage {
        image: resized.image,
        note: (!notes.is_empty()).then(|| notes.join("\n")),
    })
}

/// Like [`fit`], without limits, for users who turn resizing off.
pub fn keep_size(bytes: &[u8], kind: ImageType) -> Option<FittedImage> {
    if is_cut(bytes, kind) {
        return None;
    }
    let image = match kind {
        ImageType::Bmp => to_png(bytes, kind)?,
        _ => decode(bytes, kind).map(|_| encode(bytes, kind))?,
    };
    Some(FittedImage {
        note: conversion_note(kind, &image),
        image,
    })
}

/// Returns a note for formats that are never sent unchanged.
fn conversion_note(kind: ImageType, image: &ImageContent) -> Option<String> {
    (kind == ImageType::Bmp).then(|| {
        format!(
            "[Image converted from {} to {}.]",
            kind.mime(),
            image.mime_type
        )
    })
}

/// Like [`fit`], with limits of the caller.
pub fn resize(bytes: &[u8], kind: ImageType, limits: &Limits) -> Option<Resized> {
    let picture = decode(bytes, kind)?;
    let original = (picture.width(), picture.height());
    let (width, height) = original;
    let fits = width <= limits.width && height <= limits.height;
    let is_sent = kind != ImageType::Bmp;
    if is_sent && fits && base64_len(bytes.len()) < limits.base64 {
        return Some(Resized {
            image: encode(bytes, kind),
            original,
            size: original,
            was_resized: false,
        });
    }
    let picture = picture.into_rgba8();
    let (mut to_width, mut to_height) = within(original, limits);
    loop {
        if let Some(image) = smallest_enough(&picture, to_width, to_height, limits) {
            return Some(Resized {
                image,
                original,
                size: (to_width, to_height),
                was_resized: is_sent || original != (to_width, to_height),
            });
        }
        if (to_width, to_height) == (1, 1) {
            return None;
        }
        to_width = (to_width * 3 / 4).max(1);
        to_height = (to_height * 3 / 4).max(1);
    }
}

/// Converts the image to PNG for a terminal. `None` if it cannot be decoded.
pub fn to_png(bytes: &[u8], kind: ImageType) -> Option<ImageContent> {
    let mut png = Vec::new();
    let picture = decode(bytes, kind)?;
    picture.write_with_encoder(PngEncoder::new(&mut png)).ok()?;
    Some(encode(&png, ImageType::Png))
}

/// Decodes the image and applies its EXIF orientation.
fn decode(bytes: &[u8], kind: ImageType) -> Option<DynamicImage> {
    let mut decoder = ImageReader::with_format(Cursor::new(bytes), kind.format())
        .into_decoder()
        .ok()?;
    let orientation = decoder.orientation().ok()?;
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    picture.apply_orientation(orientation);
    Some(picture)
}

/// Returns the largest size of the same proportions within the limits.
fn within((mut width, mut height): (u32, u32), limits: &Limits) -> (u32, u32) {
    let scaled = |side: u32, limit: u32, other: u32| {
        let side = f64::from(side) * f64::from(limit) / f64::from(other);
        (side.round() as u32).max(1)
    };
    if width > limits.width {
        height = scaled(height, limits.width, width);
        width = limits.width;
    }
    if height > limits.height {
        width = scaled(width, limits.height, height);
        height = limits.height;
    }
    (width.max(1), height.max(1))
}

/// Returns the first encoding that is small enough: lossless, then with decreasing quality.
fn smallest_enough(
    picture: &RgbaImage,
    width: u32,
    height: u32,
    limits: &Limits,
) -> Option<ImageContent> {
    let resized = image::imageops::resize(picture, width, height, FilterType::Lanczos3);
    let mut png = Vec::new();
    let encoded = resized.write_with_encoder(PngEncoder::new(&mut png));
    if encoded.is_ok() && base64_len(png.len()) < limits.base64 {
        return Some(encode(&png, ImageType::Png));
    }
    let opaque = DynamicImage::ImageRgba8(resized).into_rgb8();
    let mut qualities = std::iter::once(limits.quality).chain(LESSER_QUALITIES);
    qualities.find_map(|quality| {
        let mut jpeg = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut jpeg, quality);
        opaque.write_with_encoder(encoder).ok()?;
        (base64_len(jpeg.len()) < limits.base64).then(|| encode(&jpeg, ImageType::Jpeg))
    })
}

fn base64_len(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Vec<u8> {
        let picture = RgbaImage::from_fn(width, height, |x, y| image::Rgba(pixel(x, y)));
        let mut bytes = Vec::new();
        picture
            .write_with_encoder(PngEncoder::new(&mut bytes))
            .unwrap();
        bytes
    }

    fn bmp(width: u32, height: u32) -> Vec<u8> {
        let picture = image::RgbImage::from_pixel(width, height, image::Rgb([9, 8, 7]));
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, ImageFormat::Bmp).unwrap();
        bytes.into_inner()
    }

    fn decoded(image: &ImageContent) -> RgbaImage {
        let bytes = STANDARD.decode(&image.data).unwrap();
        image::load_from_memory(&bytes).unwrap().into_rgba8()
    }

    #[test]
    fn types_by_magic_number() {
        let bmp = bmp(1, 1);
        let cases: [(&[u8], Option<ImageType>); 9] = [
            (&bmp, Some(ImageType::Bmp)),
            (
                b"BMW is a car, not a picture, whatever it begins with",
                None,
            ),
            (b"\xff\xd8\xff\xe0", Some(ImageType::Jpeg)),
            (b"\x89PNG\r\n\x1a\n....", Some(ImageType::Png)),
            (b"GIF89a", Some(ImageType::Gif)),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some(ImageType::Webp)),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"GIF is a format", None),
            (b"", None),
        ];
        for (start, expected) in cases {
            assert_eq!(detect(start), expected);
        }
    }

    #[test]
    fn small_images_stay_unchanged() {
        let bytes = png(3, 2, |_, _| [1, 2, 3, 255]);
        let expected = FittedImage {
            image: encode(&bytes, ImageType::Png),
            note: None,
        };
        assert_eq!(fit(&bytes, ImageType::Png), Some(expected));
    }

    #[test]
    fn large_pictures_shrink_with_a_note() {
        let bytes = png(3000, 1500, |_, _| [200, 10, 10, 255]);
        let fitted = fit(&bytes, ImageType::Png).unwrap();
        assert_eq!(fitted.image.mime_type, "image/png");
        assert_eq!(decoded(&fitted.image).dimensions(), (2000, 1000));
        assert_eq!(
            fitted.note.as_deref(),
            Some(
                "[Image: original 3000x1500, displayed at 2000x1000. Multiply coordinates by 1.50 \
                 to map to original image.]"
            )
        );
    }

    #[test]
    fn proportions_survive() {
        let within = |width, height| within((width, height), &Limits::default());
        assert_eq!(within(4000, 1), (2000, 1));
        assert_eq!(within(100, 8000), (25, 2000));
        assert_eq!(within(5000, 5000), (2000, 2000));
        assert_eq!(within(2001, 3000), (1334, 2000));
    }

    #[test]
    fn noise_becomes_jpeg() {
        let mut seed = 1_u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        let noise: Vec<u8> = (0..1400 * 1400 * 4).map(|_| next()).collect();
        let picture = RgbaImage::from_raw(1400, 1400, noise).unwrap();
        let mut bytes = Vec::new();
        picture
            .write_with_encoder(PngEncoder::new(&mut bytes))
            .unwrap();
        let fitted = fit(&bytes, ImageType::Png).unwrap();
        assert_eq!(fitted.image.mime_type, "image/jpeg");
        assert!(fitted.image.data.len() < MAX_BASE64);
        assert_eq!(decoded(&fitted.image).dimensions(), (1400, 1400));
    }

    #[test]
    fn a_broken_picture_is_left_out() {
        let mut bytes = png(30, 30, |x, y| [x as u8, y as u8, 0, 255]);
        bytes.truncate(60);
        assert_eq!(fit(&bytes, ImageType::Png), None);
        assert_eq!(fit(b"GIF89a", ImageType::Gif), None);
    }

    #[test]
    fn a_picture_without_its_end_is_left_out() {
        let pixels = image::RgbImage::from_fn(64, 64, |x, y| image::Rgb([x as u8, y as u8, 0]));
        let cases = [
            (ImageFormat::Png, ImageType::Png),
            (ImageFormat::Jpeg, ImageType::Jpeg),
            (ImageFormat::Gif, ImageType::Gif),
            (ImageFormat::WebP, ImageType::Webp),
            (ImageFormat::Bmp, ImageType::Bmp),
        ];
        for (format, kind) in cases {
            let mut bytes = Cursor::new(Vec::new());
            pixels.write_to(&mut bytes, format).unwrap();
            let bytes = bytes.into_inner();
            for whole in [fit(&bytes, kind), keep_size(&bytes, kind)] {
                assert!(whole.is_some(), "{kind:?}");
            }
            let cut = &bytes[..bytes.len() / 2];
            assert_eq!(
                [fit(cut, kind), keep_size(cut, kind)],
                [None, None],
                "{kind:?}"
            );
        }
    }

    #[test]
    fn bmp_becomes_png() {
        let bytes = bmp(3, 2);
        for made in [
            fit(&bytes, ImageType::Bmp).unwrap(),
            keep_size(&bytes, ImageType::Bmp).unwrap(),
        ] {
            assert_eq!(made.image.mime_type, "image/png");
            assert_eq!(decoded(&made.image).dimensions(), (3, 2));
            let note = "[Image converted from image/bmp to image/png.]";
            assert_eq!(made.note.as_deref(), Some(note));
        }
        let note = fit(&bmp(2500, 10), ImageType::Bmp).unwrap().note.unwrap();
        assert!(
            note.contains("image/png.]\n[Image: original 2500x10"),
            "{note}"
        );
    }

    #[test]
    fn types_by_name() {
        let cases = [
            ("image/jpg", Some(ImageType::Jpeg)),
            ("IMAGE/JPEG; q=1", Some(ImageType::Jpeg)),
            ("image/bmp", Some(ImageType::Bmp)),
            ("image/svg+xml", None),
        ];
        for (name, kind) in cases {
            assert_eq!(ImageType::of_mime(name), kind);
        }
    }

    /// The image is that of a camera held upright: stored wide, shown tall.
    #[test]
    fn exif_orientation_is_applied_when_encoding_anew() {
        let mut jpeg = Vec::new();
        let picture = image::RgbImage::from_fn(2400, 1200, |x, _| {
            image::Rgb(if x < 1200 { [250, 0, 0] } else { [0, 0, 250] })
        });
        picture
            .write_with_encoder(JpegEncoder::new(&mut jpeg))
            .unwrap();
        let exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        jpeg.splice(2..2, exif.iter().copied());
        let fitted = fit(&jpeg, ImageType::Jpeg).unwrap();
        let shown = decoded(&fitted.image);
        assert_eq!(shown.dimensions(), (1000, 2000));
        assert!(shown.get_pixel(500, 100).0[0] > 200);
        assert!(shown.get_pixel(500, 1900).0[2] > 200);
    }
}
