//! No metadata of a trace, however damaged or malicious, makes the decoder of events panic, hang or take
//! all memory.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::metadata::decode(bytes);
});
