//! Corrections of Deno's Node layer where it differs from Node and has no hook: a part of a
//! module's text is replaced by another. There is one file per Node module.

mod broadcast_channel;
mod child_process;
mod crypto;
mod fetch;
mod fs;
mod http;
mod missing_exports;
mod module;
mod net;
mod process;
mod sqlite;
mod stream;
mod test;
mod timers;
mod tty;
mod vm;
mod websocket;
mod worker_threads;
mod zlib;

struct Correction {
    specifier: &'static str,
    text: &'static str,
    replacement: &'static str,
}

fn all() -> impl Iterator<Item = &'static Correction> {
    let lists = [
        broadcast_channel::CORRECTIONS,
        child_process::CORRECTIONS,
        crypto::CORRECTIONS,
        fetch::CORRECTIONS,
        fs::CORRECTIONS,
        http::CORRECTIONS,
        module::CORRECTIONS,
        net::CORRECTIONS,
        process::CORRECTIONS,
        sqlite::CORRECTIONS,
        stream::CORRECTIONS,
        test::CORRECTIONS,
        timers::CORRECTIONS,
        tty::CORRECTIONS,
        vm::CORRECTIONS,
        websocket::CORRECTIONS,
        worker_threads::CORRECTIONS,
        zlib::CORRECTIONS,
    ];
    lists.into_iter().flatten()
}

/// Returns the corrected text of a module.
pub fn corrected(specifier: &str, source: String) -> String {
    let own = all().filter(|c| c.specifier == specifier);
    let corrected = own.fold(source, |source, correction| {
        let Correction { text, .. } = correction;
        assert!(
            source.contains(text),
            "{specifier} no longer contains {text}"
        );
        source.replace(text, correction.replacement)
    });
    let added = missing_exports::ADDITIONS
        .iter()
        .filter(|a| a.specifier == specifier);
    added.fold(corrected, |source, addition| {
        format!("{source}\n{}", addition.text)
    })
}

/// Returns the modules whose text is corrected. They must be in the program as text.
pub fn specifiers() -> impl Iterator<Item = &'static str> {
    let added = missing_exports::ADDITIONS
        .iter()
        .map(|addition| addition.specifier);
    all().map(|correction| correction.specifier).chain(added)
}
