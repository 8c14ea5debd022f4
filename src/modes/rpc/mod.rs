//! `--mode rpc`: reads commands from stdin and writes responses and events to stdout, one JSON
//! object a line (docs/rpc.md). Only closing stdin ends the process; no command does.

mod command;
mod event_sink;
mod fuzz;
mod handle;
mod hello;
mod images;
mod lines;
mod parse;
mod recover_id;
mod responses;
pub mod schema;

pub use fuzz::{fuzz_command, fuzz_lines};

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::command::StartupOrder;
use self::event_sink::ClientEvents;
use self::lines::Line;
use self::parse::{BadCommand, ParsedCommand, parse};
use super::output::Output;
use super::signals::{self, Interrupt};
use super::wire::Capabilities;
use super::{print_stderr, report_stdout_error, stdout_watch};
use pi_app::{AgentSession, AppConfig, ImmediateCommand};
use pi_extensions::waits_for_debugger;

/// How long running commands may take after stdin was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long running commands may take after a signal, when they are aborted. The sender of
/// the signal may not wait long before it sends the next.
const ABORT_TIMEOUT: Duration = Duration::from_millis(500);
/// Number of lines that may wait to be parsed.
const WAITING_LINES: usize = 64;

/// Bytes of commands that may wait until the session is open.
const MAX_EARLY_BYTES: usize = 64 * 1024 * 1024;
/// Environment variable with capabilities, separated by commas, for clients that send no
/// `hello`.
const CAPABILITIES_VARIABLE: &str = "PI_RPC_CAPABILITIES";

/// Runs the mode and returns the exit code. `capabilities` come from the command line.
pub async fn run(config: AppConfig, capabilities: &[String]) -> u8 {
    let ended = signals::exit_signal(Interrupt::Exits);
    tokio::pin!(ended);
    let variable = std::env::var(CAPABILITIES_VARIABLE).unwrap_or_default();
    let names = variable.split(',').map(str::trim);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names
        .iter()
        .find(|name| !Capabilities::NAMES.contains(name))
    {
        print_stderr(&format!(
            "Error: {CAPABILITIES_VARIABLE} has \"{unknown}\", which this version of pi does not \
             know. Capabilities are: {}",
            Capabilities::NAMES.join(", ")
        ));
        return 1;
    }
    let names = names.into_iter();
    let requested = Capabilities::from_names(names.chain(capabilities.iter().map(String::as_str)));
    // From here on code in this process cannot write to the protocol's streams.
    let started = js_runtime::take_standard_streams().and_then(|mut streams| {
        let gone = stdout_watch::wait_closed(&mut streams.output);
        Ok((
            Output::start(streams.output, requested)?,
            streams.input,
            gone,
        ))
    });
    let ((output, mut closed), input, gone) = match started {
        Ok(started) => started,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let session = match AgentSession::open_unloaded(config, Arc::new(ClientEvents(output.clone())))
    {
        Ok(session) => session,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    session.set_permission_requests(requested.permission_requests);
    let (lines, waiting) = mpsc::channel(WAITING_LINES);
    lines::read_stdin(input, lines);
    let tasks = TaskTracker::new();
    let mut client = Client {
        session: &session,
        output: &output,
        tasks: &tasks,
        lines: waiting,
        early: Vec::new(),
        early_bytes: 0,
        is_gone: false,
    };
    tokio::pin!(gone);
    let loaded = tokio::select! {
        loaded = client.serve_while(session.load()) => loaded,
        code = &mut ended => return code,
        () = &mut gone => return 1,
    };
    if let Err(error) = loaded {
        print_stderr(&format!("Error: {error}"));
        return 1;
    }
    for note in session.take_warnings() {
        print_stderr(&format!("Warning: {note}"));
    }
    let code = tokio::select! {
        () = client.serve() => 0,
        () = session.wait_shutdown_request() => 0,
        code = ended => code,
        () = gone => 1,
        Ok(error) = &mut closed => {
            report_stdout_error(&error);
            1
        }
    };
    tasks.close();
    // No client is left to answer dialogs.
    session.extensions().close_dialogs();
    session.close_permission_requests();
    let limit = if code == 0 {
        // Otherwise commands that wait for the end of the run would delay the exit.
        session.abort_run();
        CLOSE_TIMEOUT
    } else {
        session.abort();
        session.cancel_commands();
        output.abandon_stalled_reader();
        ABORT_TIMEOUT
    };
    let mut finished = tokio::time::timeout(limit, tasks.wait()).await;
    if finished.is_err() && code == 0 {
        // The output so far is a useful response.
        session.cancel_commands();
        finished = tokio::time::timeout(ABORT_TIMEOUT, tasks.wait()).await;
    }
    if finished.is_err() {
        tracing::warn!(tasks = tasks.len(), "commands were not answered in time");
    }
    let code = session.shutdown(code).await;
    output.flush().await;
    match closed.try_recv() {
        Ok(error) if report_stdout_error(&error) => code.max(1),
        _ => code,
    }
}

/// A command that waits until the session is open, in order of arrival.
enum EarlyCommand {
    Waiting(Result<ParsedCommand, Box<BadCommand>>),
    /// An `abort` that was answered. Earlier commands are aborted once they have begun.
    Aborted,
}

/// The connection to the client.
struct Client<'a> {
    session: &'a Arc<AgentSession>,
    output: &'a Output,
    tasks: &'a TaskTracker,
    lines: mpsc::Receiver<Line>,
    /// Commands that wait until the session is open.
    early: Vec<EarlyCommand>,
    early_bytes: usize,
    is_gone: bool,
}

impl Client<'_> {
    /// Serves commands until stdin is closed. They run concurrently: an `abort` does not wait
    /// for the command that it aborts.
    async fn serve(&mut self) {
        self.serve_while(self.session.open()).await;
        for early in std::mem::take(&mut self.early) {
            match early {
                EarlyCommand::Waiting(parsed) => self.start(parsed).await,
                // An abort does not fail.
                EarlyCommand::Aborted => _ = self.session.execute_now(ImmediateCommand::Abort),
            }
        }
        while !self.is_gone {
            // No more commands are read from a client that does not read responses.
            self.output.wait_for_response_capacity().await;
            match self.lines.recv().await {
                None => self.is_gone = true,
                Some(Line::TooLong(bytes)) => handle::respond_too_long(self.output, bytes),
                Some(Line::Text(line)) => self.start(parse(&line)).await,
            }
        }
    }

    /// Runs `opening` while reading commands. Loading extensions may open dialogs, and the client
    /// may abort; other commands wait.
    async fn serve_while<T>(&mut self, opening: impl Future<Output = T>) -> T {
        let mut opening = std::pin::pin!(opening);
        let mut tick = tokio::time::interval(CLOSE_TIMEOUT);
        loop {
            self.output.wait_for_response_capacity().await;
            let reads = !self.is_gone && self.early_bytes < MAX_EARLY_BYTES;
            tokio::select! {
                done = &mut opening => return done,
                // Checked at every tick: an extension may start to wait for a debugger after the
                // client has gone.
                _ = tick.tick(), if self.is_gone => {
                    // Without waiting commands or a client that attaches a debugger, there is no
                    // reason to go on loading.
                    if self.early.is_empty() || waits_for_debugger() {
                        self.session.extensions().abort(None);
                    }
                }
                line = self.lines.recv(), if reads => match line {
                    None => {
                        self.is_gone = true;
                        // No client is left to answer dialogs.
                        self.session.extensions().close_dialogs();
                    }
                    Some(Line::TooLong(bytes)) => handle::respond_too_long(self.output, bytes),
                    Some(Line::Text(line)) => self.accept_early(&line).await,
                }
            }
        }
    }

    async fn accept_early(&mut self, line: &[u8]) {
        let parsed = parse(line);
        let order = match &parsed {
            Ok(parsed) => parsed.command.startup_order(),
            Err(_) => StartupOrder::AfterOpen,
        };
        match order {
            StartupOrder::Immediate => self.start(parsed).await,
            StartupOrder::Abort => {
                if !self.early.is_empty() {
                    self.early.push(EarlyCommand::Aborted);
                }
                self.start(parsed).await;
            }
            StartupOrder::AfterOpen => {
                self.early_bytes += line.len();
                self.early.push(EarlyCommand::Waiting(parsed));
            }
        }
    }

    /// Starts a command. A command that needs no waiting is finished at once, so that its
    /// response and its effect come before the next command. Tokio's cooperative budget is off:
    /// otherwise some of many commands would be postponed.
    async fn start(&self, parsed: Result<ParsedCommand, Box<BadCommand>>) {
        let (session, output) = (self.session.clone(), self.output.clone());
        let mut work =
            Box::pin(async move { handle::run_command(&session, &output, parsed).await });
        if futures::poll!(tokio::task::unconstrained(&mut work)).is_pending() {
            self.tasks.spawn(work);
        }
    }
}
