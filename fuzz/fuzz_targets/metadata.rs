//! No metadata in a trace, however damaged or malicious, makes the event decoder panic, hang or exhaust memory.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::metadata::decode(bytes);
});
