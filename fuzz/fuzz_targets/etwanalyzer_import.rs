//! No ETWAnalyzer extract, however damaged or malicious, makes the import panic, hang or exhaust memory.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::sources::import_extract(bytes);
});
