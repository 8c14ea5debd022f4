//! Where Deno's Node layer does not do what Node does, and no hook of it lets us: a
//! line of its text is another one in the program.

mod descriptors;
mod files;
mod modules;
mod names;
mod network;
mod others;
mod tests;

struct Correction {
    specifier: &'static str,
    text: &'static str,
    replacement: &'static str,
}

fn all() -> impl Iterator<Item = &'static Correction> {
    let lists = [
        descriptors::CORRECTIONS,
        files::CORRECTIONS,
        modules::CORRECTIONS,
        network::CORRECTIONS,
        others::CORRECTIONS,
        tests::CORRECTIONS,
    ];
    lists.into_iter().flatten()
}

/// The text of a module as the program has it.
pub fn corrected(specifier: &str, source: String) -> String {
    let own = all().filter(|c| c.specifier == specifier);
    let corrected = own.fold(source, |source, correction| {
        let Correction { text, .. } = correction;
        assert!(
            source.contains(text),
            "{specifier} does not say {text} any more"
        );
        source.replace(text, correction.replacement)
    });
    let added = names::ADDITIONS.iter().filter(|a| a.specifier == specifier);
    added.fold(corrected, |source, addition| {
        format!("{source}\n{}", addition.text)
    })
}

/// All modules whose text is corrected: they must be in the program as text.
pub fn specifiers() -> impl Iterator<Item = &'static str> {
    let added = names::ADDITIONS.iter().map(|addition| addition.specifier);
    all().map(|correction| correction.specifier).chain(added)
}
