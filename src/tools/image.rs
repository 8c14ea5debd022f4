//! Pictures for a model: which files are pictures, and how to make one small
//! enough for the providers' limits.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, RgbaImage};

use crate::ai::message::ImageContent;

/// How much of a file [`detect`] wants to see.
pub const SNIFF_BYTES: usize = 4100;
pub const OMITTED: &str =
    "[Image omitted: could not be resized below the inline image size limit.]";

const MAX_SIDE: u32 = 2000;
/// Of base64, with room below the 5 MB that Anthropic takes.
const MAX_BASE64: usize = 4_718_592;
const JPEG_QUALITY: u8 = 80;
const LESSER_QUALITIES: [u8; 4] = [85, 70, 55, 40];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageType {
    Jpeg,
    Png,
    Gif,
    Webp,
}

impl ImageType {
    pub fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// `None` for what is no picture to us.
    pub fn of_mime(mime: &str) -> Option<Self> {
        [Self::Jpeg, Self::Png, Self::Gif, Self::Webp]
            .into_iter()
            .find(|kind| kind.mime() == mime)
    }

    fn format(self) -> ImageFormat {
        match self {
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Png => ImageFormat::Png,
            Self::Gif => ImageFormat::Gif,
            Self::Webp => ImageFormat::WebP,
        }
    }
}

/// By the first bytes of a file, whatever its name says.
pub fn detect(start: &[u8]) -> Option<ImageType> {
    if start.starts_with(&[0xff, 0xd8, 0xff]) {
        Some(ImageType::Jpeg)
    } else if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageType::Png)
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some(ImageType::Gif)
    } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        Some(ImageType::Webp)
    } else {
        None
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FittedImage {
    pub image: ImageContent,
    /// Tells the model how to map coordinates; only when it was resized.
    pub note: Option<String>,
}

/// What a provider takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub width: u32,
    pub height: u32,
    /// Of the encoded text.
    pub base64: usize,
    /// Of JPEG, the first that is tried.
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

/// A picture within limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Resized {
    pub image: ImageContent,
    /// Width and height.
    pub original: (u32, u32),
    pub size: (u32, u32),
    pub was_resized: bool,
}

/// As it is, without a look inside.
pub fn encode(bytes: &[u8], kind: ImageType) -> ImageContent {
    ImageContent {
        data: STANDARD.encode(bytes),
        mime_type: kind.mime().to_owned(),
    }
}

/// The picture as it is when it is within the limits, else made smaller. `None`
/// when that fails or when it cannot be decoded: a broken picture in the
/// conversation would make the provider refuse every request from then on.
pub fn fit(bytes: &[u8], kind: ImageType) -> Option<FittedImage> {
    let resized = resize(bytes, kind, &Limits::default())?;
    let ((width, height), (to_width, to_height)) = (resized.original, resized.size);
    let scale = f64::from(width) / f64::from(to_width);
    let note = format!(
        "[Image: original {width}x{height}, displayed at {to_width}x{to_height}. \
         Multiply coordinates by {scale:.2} to map to original image.]"
    );
    Some(FittedImage {
        image: resized.image,
        note: resized.was_resized.then_some(note),
    })
}

/// [`fit`] for limits of the caller's own.
pub fn resize(bytes: &[u8], kind: ImageType, limits: &Limits) -> Option<Resized> {
    let picture = decode(bytes, kind)?;
    let original = (picture.width(), picture.height());
    let (width, height) = original;
    let fits = width <= limits.width && height <= limits.height;
    if fits && base64_len(bytes.len()) < limits.base64 {
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
                was_resized: true,
            });
        }
        if (to_width, to_height) == (1, 1) {
            return None;
        }
        to_width = (to_width * 3 / 4).max(1);
        to_height = (to_height * 3 / 4).max(1);
    }
}

/// The same picture, as a terminal takes it. `None` if it cannot be decoded.
pub fn to_png(bytes: &[u8], kind: ImageType) -> Option<ImageContent> {
    let mut png = Vec::new();
    let picture = decode(bytes, kind)?;
    picture.write_with_encoder(PngEncoder::new(&mut png)).ok()?;
    Some(encode(&png, ImageType::Png))
}

/// Turned the way its EXIF data says.
fn decode(bytes: &[u8], kind: ImageType) -> Option<DynamicImage> {
    let mut decoder = ImageReader::with_format(Cursor::new(bytes), kind.format())
        .into_decoder()
        .ok()?;
    let orientation = decoder.orientation().ok()?;
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    picture.apply_orientation(orientation);
    Some(picture)
}

/// The size with the same proportions that keeps both sides within the limits.
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

/// The first encoding that is small enough: lossless, then ever more lossy.
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

    fn decoded(image: &ImageContent) -> RgbaImage {
        let bytes = STANDARD.decode(&image.data).unwrap();
        image::load_from_memory(&bytes).unwrap().into_rgba8()
    }

    #[test]
    fn types_by_magic_number() {
        let cases: [(&[u8], Option<ImageType>); 7] = [
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
    fn small_pictures_stay_as_they_are() {
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

    /// A camera held upright: wide pixels, to be shown tall.
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
