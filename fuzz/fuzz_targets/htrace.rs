//! No text of a debugger and no list of handles, however damaged or malicious, makes an extraction panic, hang or take all
//! memory, and what it makes of one can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::sources::read_text(bytes);
});
