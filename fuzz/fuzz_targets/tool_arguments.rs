#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pi::fuzz::tool_arguments(bytes));
