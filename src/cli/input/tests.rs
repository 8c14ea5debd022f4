use std::fs;

use ::image::{ImageFormat, RgbImage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;
use pi_ai::message::ImageContent;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }

    fn assemble(
        &self,
        piped: Option<&str>,
        names: &[&str],
        messages: &[&str],
    ) -> Result<Vec<PromptContent>, InputError> {
        self.assemble_images(piped, names, messages, true)
    }

    fn assemble_images(
        &self,
        piped: Option<&str>,
        names: &[&str],
        messages: &[&str],
        resize_images: bool,
    ) -> Result<Vec<PromptContent>, InputError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
        let files = FileArguments {
            names: &names,
            cwd: self.0.path(),
            resize_images,
        };
        let messages = messages.iter().map(|text| (*text).to_string()).collect();
        assemble(piped.map(str::to_string), &files, messages)
    }
}

fn text(text: &str) -> PromptContent {
    PromptContent {
        text: text.to_string(),
        images: Vec::new(),
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = io::Cursor::new(Vec::new());
    RgbImage::new(width, height)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

#[test]
fn the_first_prompt_joins_all_input() {
    let folder = Folder::new();
    folder.write("a.txt", b"alpha\n");
    folder.write("b.txt", b"beta");
    let prompts = folder
        .assemble(Some("piped"), &["a.txt", "b.txt"], &["one", "two", "three"])
        .unwrap();
    let (a, b) = (folder.path("a.txt"), folder.path("b.txt"));
    let first = format!(
        "piped<file name=\"{a}\">\nalpha\n\n</file>\n<file name=\"{b}\">\nbeta\n</file>\none"
    );
    assert_eq!(prompts, [text(&first), text("two"), text("three")]);
}

#[test]
fn empty_input_is_no_prompt() {
    let folder = Folder::new();
    folder.write("empty.txt", b"");
    assert_eq!(folder.assemble(None, &[], &[]).unwrap(), []);
    assert_eq!(folder.assemble(None, &["empty.txt"], &[]).unwrap(), []);
    assert_eq!(folder.assemble(None, &[], &["", ""]).unwrap(), []);
    assert_eq!(folder.assemble(Some("x"), &[], &[]).unwrap(), [text("x")]);
    assert_eq!(
        folder.assemble(None, &[], &["", "a", "", "b"]).unwrap(),
        [text("a"), text("b")]
    );
    assert_eq!(
        folder.assemble(None, &["empty.txt"], &["say"]).unwrap(),
        [text("say")]
    );
}

#[test]
fn typed_variants_of_file_names_are_found() {
    let folder = Folder::new();
    folder.write(
        "Shot at 1.02 PM.txt".replace(" PM", "\u{202f}PM").as_str(),
        b"x",
    );
    let prompts = folder
        .assemble(None, &["./Shot at 1.02 PM.txt"], &[])
        .unwrap();
    let path = folder.path("Shot at 1.02\u{202f}PM.txt");
    assert_eq!(
        prompts,
        [text(&format!("<file name=\"{path}\">\nx\n</file>\n"))]
    );
}

#[test]
fn invalid_utf8_is_replaced() {
    let folder = Folder::new();
    folder.write("latin1.txt", b"caf\xe9");
    let prompts = folder.assemble(None, &["latin1.txt"], &[]).unwrap();
    let path = folder.path("latin1.txt");
    let expected = format!("<file name=\"{path}\">\ncaf\u{fffd}\n</file>\n");
    assert_eq!(prompts, [text(&expected)]);
}

#[test]
fn images_are_attached_and_named() {
    let folder = Folder::new();
    let small = png(3, 2);
    folder.write("small.txt", &small);
    folder.write("large.png", &png(4000, 10));
    folder.write("broken.png", &small[..20]);
    let small_image = ImageContent {
        data: STANDARD.encode(&small),
        mime_type: "image/png".into(),
    };
    let names = ["small.txt", "large.png", "broken.png"];
    let [prompt] = folder
        .assemble(None, &names, &["what?"])
        .unwrap()
        .try_into()
        .unwrap();
    let [small_path, large_path, broken_path] = names.map(|name| folder.path(name));
    let omitted = images::OMITTED_TEXT;
    assert_eq!(
        prompt.text,
        format!(
            "<file name=\"{small_path}\"></file>\n\
             <file name=\"{large_path}\">[Image: original 4000x10, displayed at 2000x5. \
             Multiply coordinates by 2.00 to map to original image.]</file>\n\
             <file name=\"{broken_path}\">{omitted}</file>\nwhat?"
        )
    );
    assert_eq!(prompt.images.len(), 2);
    assert_eq!(prompt.images[0], small_image);
}

#[test]
fn images_are_not_resized_if_the_setting_is_off() {
    let folder = Folder::new();
    let large = png(4000, 10);
    folder.write("large.png", &large);
    let prompts = folder
        .assemble_images(None, &["large.png"], &[], false)
        .unwrap();
    let path = folder.path("large.png");
    let expected = PromptContent {
        text: format!("<file name=\"{path}\"></file>\n"),
        images: vec![ImageContent {
            data: STANDARD.encode(&large),
            mime_type: "image/png".into(),
        }],
    };
    assert_eq!(prompts, [expected]);
}

#[test]
fn read_errors_name_the_file() {
    let folder = Folder::new();
    let error = |name: &str| {
        folder
            .assemble(None, &[name], &["x"])
            .unwrap_err()
            .to_string()
    };
    let missing = folder.path("missing.txt");
    assert_eq!(error("missing.txt"), format!("File not found: {missing}"));
    fs::create_dir(folder.0.path().join("folder")).unwrap();
    let path = folder.path("folder");
    let prefix = format!("Could not read file {path}: ");
    assert!(error("folder").starts_with(&prefix), "{}", error("folder"));
    let huge = File::create(folder.0.path().join("huge")).unwrap();
    huge.set_len(MAX_INPUT_BYTES + 1).unwrap();
    let path = folder.path("huge");
    assert_eq!(
        error("huge"),
        format!("Could not read file {path}: larger than 64 MB")
    );
}

fn piped(bytes: &'static [u8]) -> Option<String> {
    read_piped(bytes, Duration::MAX, || {
        panic!("there is nothing to wait for")
    })
    .unwrap()
}

#[test]
fn piped_text_is_trimmed() {
    assert_eq!(piped(b"\xef\xbb\xbf a\nb \r\n").as_deref(), Some("a\nb"));
    assert_eq!(piped(b"caf\xe9").as_deref(), Some("caf\u{fffd}"));
    assert_eq!(piped(b" \n\t\n"), None);
    assert_eq!(piped(b""), None);
}

#[test]
fn a_slow_pipe_is_awaited_with_a_notice() {
    let (reader, mut writer) = io::pipe().unwrap();
    let text = read_piped(reader, Duration::from_millis(1), || {
        io::Write::write_all(&mut writer, b"late").unwrap();
        drop(writer);
    });
    assert_eq!(text.unwrap().as_deref(), Some("late"));
}

#[test]
fn piped_input_without_end_is_refused() {
    let error = read_piped(io::repeat(b'x'), Duration::MAX, || ()).unwrap_err();
    assert_eq!(error.to_string(), "stdin holds more than 64 MB");
}
