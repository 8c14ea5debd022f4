//! Checks of the code that reads bytes from outside. Each must hold for any input. They are called
//! by the fuzzers (`fuzz/`), which need another compiler, and by the property tests here.

pub use pi_ai::fuzz_sse as sse;
pub use pi_ai::stream::tool_arguments::fuzz_tool_arguments as tool_arguments;
pub use pi_modes::rpc::{fuzz_command as command, fuzz_lines as lines};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Parts of valid input, so that generated input passes the first checks.
    const WORDS: [&str; 46] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"id\"",
        "\"type\"",
        "\"message\"",
        "\"x\"",
        "{\"type\":\"prompt\",\"message\":\"",
        "{\"id\":",
        "\"get_state\"",
        "\"bash\"",
        "null",
        "true",
        "-1e9",
        "0",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\u{2028}",
        "\u{feff}",
        "\u{1f980}",
        "\\u0000",
        "\\ud800",
        "\\ude00",
        "\\u12",
        "\\d",
        "{\"a\":\"",
        "\"}",
        "\t",
        "data:",
        "data: ",
        "event: ",
        "event",
        ": x",
        "data: {\"a\":1}\n\n",
        "[DONE]",
        "\n\n",
        "\r\r",
        "id: 1",
        "x",
    ];

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let word = (0..WORDS.len()).prop_map(|word| WORDS[word].as_bytes().to_vec());
        let noise = vec(any::<u8>(), 0..8);
        let piece = prop_oneof![8 => word, 1 => noise];
        vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lines_match_the_simple_reader(bytes in bytes()) {
            super::lines(&bytes);
        }

        #[test]
        fn commands_are_parsed_or_refused(bytes in bytes()) {
            super::command(&bytes);
        }

        #[test]
        fn arguments_are_parsed_or_refused(bytes in bytes()) {
            super::tool_arguments(&bytes);
        }

        #[test]
        fn events_do_not_depend_on_chunks(bytes in bytes()) {
            super::sse(&bytes);
        }
    }

    /// Checks the seeds of the fuzzers and inputs that they once found.
    #[test]
    fn the_corpus_passes() {
        type Check = fn(&[u8]);
        let targets: [(&str, Check); 4] = [
            ("lines", super::lines),
            ("command", super::command),
            ("sse", super::sse),
            ("tool_arguments", super::tool_arguments),
        ];
        for (target, check) in targets {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("fuzz/corpus")
                .join(target);
            let mut count = 0;
            for entry in std::fs::read_dir(&folder).unwrap() {
                check(&std::fs::read(entry.unwrap().path()).unwrap());
                count += 1;
            }
            assert!(count > 2, "{} has {count} files", folder.display());
        }
    }
}
