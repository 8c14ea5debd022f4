//! The scripted model from a shell, for a person or a bench:
//! `cargo run -p model-server -- --script answers.json [--api NAME] [--port N]`
//!
//! The script is a JSON array of answers. Prints the `models.json` that points
//! to the server, then one line per request, and serves until it is killed.

use std::io::Write;

use model_server::{Answer, Api, ModelServer};

const USAGE: &str = "usage: model-server --script FILE [--api NAME] [--port N] [--repeat-last]

FILE is a JSON array of answers, given in order, one per request:
  {\"blocks\": [{\"thinking\": \"…\"}, {\"text\": \"…\"}, {\"tool\": {\"name\": \"bash\", \"arguments\": {…}}}]}
  {\"status\": 429, \"message\": \"slow down\", \"headers\": {\"retry-after\": \"1\"}}
  {\"raw\": \"data: not JSON\\n\\n\"}
and, with blocks: \"stop\": \"length\", \"usage\": [in, out], \"delay\": ms,
\"cutAfter\": deltas, \"stallAfter\": deltas, \"error\": \"…\".
--repeat-last answers every further request with the last answer.
--api is anthropic-messages (the default), openai-completions or openai-responses;
the server itself speaks all three.";

struct Arguments {
    script: String,
    api: Api,
    port: u16,
    repeat_last: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    match run().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "model-server: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let arguments = parse(std::env::args().skip(1))?;
    let script = std::fs::read_to_string(&arguments.script)
        .map_err(|error| format!("{}: {error}", arguments.script))?;
    let answers: Vec<Answer> =
        serde_json::from_str(&script).map_err(|error| format!("{}: {error}", arguments.script))?;
    let server = ModelServer::start_on(arguments.port)
        .await
        .map_err(|error| format!("port {}: {error}", arguments.port))?;
    if arguments.repeat_last
        && let Some(last) = answers.last()
    {
        server.repeat(last.clone());
    }
    for answer in answers {
        server.push(answer);
    }
    print_line(&server.models_json(arguments.api))?;
    for count in 1.. {
        server.wait_until_received(count).await;
        let request = &server.requests()[count - 1];
        print_line(&format!("{} {}\n", request.path, request.body))?;
    }
    Ok(())
}

fn print_line(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("stdout: {error}"))
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut script = None;
    let mut api = Api::AnthropicMessages;
    let mut port = 0;
    let mut repeat_last = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--script" => script = Some(value()?),
            "--api" => {
                let name = value()?;
                let mut all = Api::ALL.into_iter();
                api = all
                    .find(|api| api.name() == name)
                    .ok_or(format!("no API is called {name}\n{USAGE}"))?;
            }
            "--port" => {
                let text = value()?;
                port = text.parse().map_err(|_| format!("{text} is no port"))?;
            }
            "--repeat-last" => repeat_last = true,
            _ => return Err(format!("what is {word}?\n{USAGE}")),
        }
    }
    Ok(Arguments {
        script: script.ok_or(USAGE)?,
        api,
        port,
        repeat_last,
    })
}
