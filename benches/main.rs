//! Prints the figures of docs/performance.md, with those of the original where it is installed.
//! Asserts nothing. Run with `./x bench`, on an idle machine.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod bridge;
mod clients;
mod fleet;
mod original;
mod process;
mod session;
mod sessions;
mod tools;
mod trust;

fn main() {
    // This program also serves as the extensions' own process.
    if let Some(code) = js_runtime::run_if_host_process() {
        std::process::exit(code.into());
    }
    // `cargo test --benches` only checks that the program starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let pi = process::Program::ours();
    let original = original::find();
    println!("pi {}, {} cores", pi_base::VERSION, cores());
    match &original {
        Some(_) => println!(
            "the original: @mariozechner/pi-coding-agent {}",
            original::VERSION
        ),
        None => {
            println!("the original is not installed: run the tests once to have it beside ours")
        }
    }
    println!();
    tokio.block_on(async {
        if is_selected("processes") {
            process::start_up(&pi, original.as_ref()).await;
            process::new_session(&pi, original.as_ref()).await;
            process::stream(&pi, original.as_ref()).await;
            process::long_answer(&pi, original.as_ref()).await;
            process::idle(&pi, original.as_ref()).await;
        }
        if is_selected("clients") {
            clients::first_text(&pi, original.as_ref()).await;
        }
        if is_selected("bridge") {
            bridge::round_trips().await;
        }
        if is_selected("sessions") {
            session::long_sessions(&pi, original.as_ref()).await;
        }
        if is_selected("fleet") {
            fleet::many_agents(&pi, original.as_ref()).await;
        }
        if is_selected("tools") {
            tools::measure().await;
        }
        if is_selected("trust") {
            trust::starts(&pi).await;
        }
    });
    if is_selected("sessions") {
        sessions::list_and_search();
    }
}

/// Whether a part was selected on the command line, which selects everything by default.
fn is_selected(part: &str) -> bool {
    let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let mut any = false;
    named.any(|arg| {
        any = true;
        arg == part
    }) || !any
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Prints a line of the table: the median of the values, if there are any.
fn print(what: &str, unit: &str, ours: &mut [f64], theirs: Option<&mut [f64]>) {
    if ours.is_empty() {
        return;
    }
    let spread = |values: &mut [f64]| {
        values.sort_by(f64::total_cmp);
        let at = |share: usize| values[(values.len() - 1) * share / 100];
        (at(50), at(0), at(99))
    };
    let (median, least, most) = spread(ours);
    print!("{what:<52} {median:>9.1} {unit:<5} ({least:.1} to {most:.1})");
    if let Some(theirs) = theirs {
        let (other, ..) = spread(theirs);
        print!("   original {other:.1} {unit}, ratio {:.3}", median / other);
    }
    println!();
}
