//! A pseudo-terminal with pi in it, which tests type into and read from.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use parking_lot::Mutex;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use regex::Regex;

use super::{DEMO, Home, TIMEOUT};

const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    printed: Receiver<Vec<u8>>,
    /// The visible screen.
    screen: Arc<Mutex<vt100::Parser>>,
    /// Everything that was printed, with escape sequences.
    raw: Vec<u8>,
    /// Number of bytes of [`Self::text`] that earlier waits have consumed.
    seen: usize,
}

impl Terminal {
    /// Starts the demo model and waits for the first prompt.
    pub fn start(home: &Home, term: &str) -> Self {
        let mut terminal = Self::open(home, term, &DEMO);
        terminal.see("/help lists the commands.");
        terminal.see("> ");
        terminal
    }

    /// Starts pi and waits for nothing.
    pub fn open(home: &Home, term: &str, arguments: &[&str]) -> Self {
        Self::run(home, term, env!("CARGO_BIN_EXE_pi"), arguments)
    }

    /// Starts a program and waits for nothing.
    pub fn run(home: &Home, term: &str, program: &str, arguments: &[&str]) -> Self {
        let pair = native_pty_system()
            .openpty(PtySize {
                rows: ROWS.get(),
                cols: COLUMNS.get(),
                ..PtySize::default()
            })
            .unwrap();
        let environment = home.command("pi");
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        for (name, value) in environment.as_std().get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", term);
        command.cwd(home.cwd());
        command.args(arguments);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let keys = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (print, printed) = mpsc::channel();
        let answers = keys.clone();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // On Linux, the end of a terminal is a read error.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let bytes = buffer[..count].to_vec();
                shown.lock().process(&bytes);
                // The line editor asks for the cursor position.
                if bytes.windows(4).any(|four| four == b"\x1b[6n") {
                    let (row, column) = shown.lock().screen().cursor_position();
                    let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                    answers.lock().write_all(answer.as_bytes()).unwrap();
                }
                if print.send(bytes).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            master: pair.master,
            keys,
            printed,
            screen,
            raw: Vec::new(),
            seen: 0,
        }
    }

    fn text(&self) -> String {
        static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[78]|\r").unwrap()
        });
        let text = String::from_utf8_lossy(&self.raw);
        SEQUENCE.replace_all(&text, "").into_owned()
    }

    /// Waits until a text is printed after the last match; returns the text in between.
    pub fn see(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let text = self.text();
            let new = text.get(self.seen..).unwrap_or_default();
            if let Some(at) = new.find(wanted) {
                self.seen += at + wanted.len();
                return new[..at].to_string();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.printed.recv_timeout(left) {
                Ok(bytes) => self.raw.extend(bytes),
                Err(error) => panic!("{wanted:?} was never printed ({error}):\n{text}"),
            }
        }
    }

    /// Waits until both texts are printed, in either order.
    pub fn see_both(&mut self, one: &str, other: &str) {
        if !self.see(other).contains(one) {
            self.see(one);
        }
    }

    pub fn keys(&mut self, keys: &str) {
        self.keys.lock().write_all(keys.as_bytes()).unwrap();
    }

    pub fn line(&mut self, text: &str) {
        self.keys(&format!("{text}\r"));
    }

    /// The visible text.
    pub fn screen(&self) -> String {
        self.screen.lock().screen().contents()
    }

    /// Everything that was printed, with escape sequences.
    pub fn printed(&self) -> &[u8] {
        &self.raw
    }

    pub fn resize(&self, rows: u16, cols: u16) {
        let size = PtySize {
            rows,
            cols,
            ..PtySize::default()
        };
        self.master.resize(size).unwrap();
    }

    /// Whether the terminal is in raw mode: single keys, no echo.
    pub fn is_raw(&self) -> bool {
        const ICANON_AND_ECHO: u32 = 0o12;
        let settings = self.master.get_termios().expect("a Unix terminal");
        settings.local_flags.bits() & ICANON_AND_ECHO != ICANON_AND_ECHO
    }

    pub fn process_id(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Waits for the end, insists that the terminal is restored, and returns the exit code.
    pub fn end(mut self) -> u32 {
        let before = self.raw.len();
        while let Ok(bytes) = self.printed.recv_timeout(TIMEOUT) {
            self.raw.extend(bytes);
        }
        let status = self.child.wait().unwrap();
        let last = String::from_utf8_lossy(&self.raw[before..]).into_owned();
        assert!(!last.contains("panicked"), "{last}");
        assert!(!self.is_raw());
        status.exit_code()
    }
}
