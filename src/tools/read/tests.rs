use super::*;
use crate::testing::{invocation, run};

struct Workspace {
    folder: tempfile::TempDir,
    tool: ReadTool,
}

fn setup() -> Workspace {
    let folder = tempfile::tempdir().unwrap();
    let tool = ReadTool::new(folder.path().to_owned(), true);
    Workspace { folder, tool }
}

impl Workspace {
    async fn read(&self, content: &[u8], mut args: Value) -> Result<ToolOutput, String> {
        std::fs::write(self.folder.path().join("f"), content).unwrap();
        args["path"] = json!("f");
        run(&self.tool, args).await.map_err(|error| error.0)
    }
}

fn lines(count: usize) -> String {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

fn shown(result: Result<ToolOutput, String>) -> String {
    pi_ai::message::join_text(&result.unwrap().content)
}

#[tokio::test]
async fn text_is_returned_unchanged() {
    let workspace = setup();
    for text in ["", "a", "a\r\nb\r\n", "\u{feff}bom\n", "\n"] {
        let result = workspace.read(text.as_bytes(), json!({})).await;
        assert_eq!(result, Ok(ToolOutput::text(text)));
    }
    let result = workspace.read(b"a\xff\xc3(\n", json!({})).await;
    assert_eq!(result, Ok(ToolOutput::text("a\u{fffd}\u{fffd}(\n")));
}

#[tokio::test]
async fn parts_say_how_to_go_on() {
    let workspace = setup();
    let cases = [
        (
            json!({"offset": 2, "limit": 2}),
            "b\nc\n\n[1 more lines in file. Use offset=4 to continue.]",
        ),
        (json!({"offset": "3"}), "c\n"),
        (json!({"offset": 0, "limit": null}), "a\nb\nc\n"),
        (json!({"limit": 4}), "a\nb\nc\n"),
        (
            json!({"limit": 3}),
            "a\nb\nc\n\n[1 more lines in file. Use offset=4 to continue.]",
        ),
        (
            json!({"limit": 0}),
            "\n\n[4 more lines in file. Use offset=1 to continue.]",
        ),
        (
            json!({"limit": -1}),
            "\n\n[4 more lines in file. Use offset=1 to continue.]",
        ),
        (json!({"offset": 1e300}), "Offset 1"),
    ];
    for (args, expected) in cases {
        match workspace.read(b"a\nb\nc\n", args).await {
            Err(error) => assert!(error.starts_with(expected), "{error}"),
            result => assert_eq!(shown(result), expected),
        }
    }
    assert_eq!(
        workspace.read(b"a\n", json!({"offset": 3})).await,
        Err("Offset 3 is beyond end of file (2 lines total)".to_owned())
    );
}

#[tokio::test]
async fn long_text_is_cut_with_a_notice() {
    let workspace = setup();
    let result = workspace
        .read(lines(5000).as_bytes(), json!({"offset": 11}))
        .await;
    let output = result.unwrap();
    let text = pi_ai::message::join_text(&output.content);
    assert!(text.starts_with("line 11\n"));
    assert!(
        text.ends_with(
            "line 2010\n\n[Showing lines 11-2010 of 5001. Use offset=2011 to continue.]"
        )
    );
    let truncation = &output.details.unwrap()["truncation"];
    assert_eq!(truncation["totalLines"], 4991);
    assert_eq!(truncation["truncatedBy"], "lines");

    let wide: String = (0..600).map(|_| "w".repeat(99) + "\n").collect();
    let text = shown(workspace.read(wide.as_bytes(), json!({})).await);
    assert!(text.ends_with(
        "w\n\n[Showing lines 1-512 of 601 (50.0KB limit). Use offset=513 to continue.]"
    ));
}

#[tokio::test]
async fn a_line_too_long_is_left_to_bash() {
    let workspace = setup();
    let text = format!("short\n{}\nnext\n", "x".repeat(60_000));
    let text = shown(workspace.read(text.as_bytes(), json!({"offset": 2})).await);
    assert_eq!(
        text,
        "[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' f | head -c 51200]"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn unreadable_files_are_reported() {
    let workspace = setup();
    let place = workspace.folder.path().display().to_string();
    let made = std::process::Command::new("mkfifo")
        .arg(workspace.folder.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let cases = [
        (
            "none",
            format!("ENOENT: no such file or directory, access '{place}/none'"),
        ),
        (
            ".",
            "EISDIR: illegal operation on a directory, read".to_owned(),
        ),
        (
            "pipe",
            "pipe is not a regular file. Use bash to read from it, with a timeout.".to_owned(),
        ),
    ];
    for (path, expected) in cases {
        let result = run(&workspace.tool, json!({"path": path})).await;
        assert_eq!(result, Err(ToolError(expected)));
    }
}

#[tokio::test]
async fn pictures_are_known_by_their_content() {
    let workspace = setup();
    let mut png = Vec::new();
    let picture = ::image::RgbaImage::new(2, 2);
    picture
        .write_with_encoder(::image::codecs::png::PngEncoder::new(&mut png))
        .unwrap();
    assert_eq!(
        workspace.read(&png, json!({})).await,
        Ok(ToolOutput {
            content: vec![
                ContentBlock::text("Read image file [image/png]"),
                ContentBlock::image(images::encode(&png, ImageType::Png)),
            ],
            details: None,
            ..ToolOutput::default()
        })
    );
    png.truncate(40);
    assert_eq!(
        shown(workspace.read(&png, json!({})).await),
        "Read image file [image/png]\n[Image omitted: could not be resized below the inline image \
         size limit.]"
    );
}

#[tokio::test]
async fn an_abort_ends_the_call() {
    let workspace = setup();
    let call = invocation(json!({"path": "f"}));
    call.cancel.cancel();
    assert_eq!(
        workspace.tool.execute(call).await,
        Err(ToolError::aborted())
    );
}

#[test]
fn any_cut_gives_the_same_lines() {
    let bytes = b"a\xc3\xa9\nb\xff\n\n\xe2\x82\nlast \xf0\x9f\x98\x80";
    let all = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = all.split('\n').collect();
    for skip in 0..=all.len() {
        for lines in [None, Some(0), Some(1), Some(2), Some(9)] {
            let end = lines.map_or(all.len(), |lines| all.len().min(skip + lines));
            let expected = all.get(skip..end).unwrap_or_default().join("\n");
            for cut in 0..=bytes.len() {
                let mut window = Window::new(skip, lines);
                window.push(&bytes[..cut]);
                window.push(&bytes[cut..]);
                assert_eq!(window.newlines + 1, all.len());
                let shown = window.finish().finish().content;
                assert_eq!(shown, expected, "{skip}, {lines:?}, cut at {cut}");
            }
        }
    }
}
