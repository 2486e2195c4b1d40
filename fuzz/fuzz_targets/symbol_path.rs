//! Every text is a symbol path, and every value of `-symserver` is one or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| handlescope_fuzz::symbols::read_path(text));
