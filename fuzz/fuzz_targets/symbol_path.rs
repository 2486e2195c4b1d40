//! Any text is a valid symbol path, and any value of `-symserver` is valid or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| handlescope_fuzz::symbols::read_path(text));
