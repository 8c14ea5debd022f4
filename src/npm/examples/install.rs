//! Installs one package of npm into a folder, to measure and to look at the result:
//! `cargo run --release -p pi-npm --example install -- NAME RANGE FOLDER`.

use std::path::PathBuf;

use pi_npm::{Npm, NpmConfig, Options, Root};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(range), Some(folder)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: install NAME RANGE FOLDER".into());
    };
    let folder = PathBuf::from(folder);
    let home = std::env::home_dir().unwrap_or_default();
    let config = NpmConfig::of_user(&home)?;
    let npm = Npm::new(config, reqwest::Client::builder())?;
    let options = Options {
        // As in pi, which has these modules itself.
        provided: &[
            "@mariozechner/pi-agent-core",
            "@mariozechner/pi-ai",
            "@mariozechner/pi-coding-agent",
            "@mariozechner/pi-tui",
            "@earendil-works/pi-agent-core",
            "@earendil-works/pi-ai",
            "@earendil-works/pi-coding-agent",
            "@earendil-works/pi-tui",
            "@sinclair/typebox",
            "typebox",
        ],
        ..Options::default()
    };
    let tree = npm
        .resolve(&Root::Package { name, range }, &options)
        .await?;
    let installed = npm.install(tree, &folder).await?;
    eprintln!("{} packages", installed.tree.distinct().count());
    Ok(())
}
