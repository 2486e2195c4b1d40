//! No debugger text and no handle list, however damaged or malicious, makes an extraction panic, hang or exhaust
//! memory, and the archive it makes can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::sources::read_text(bytes);
});
