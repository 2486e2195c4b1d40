//! No trace, however damaged or malicious, makes an extraction panic, hang or exhaust memory. The number of threads
//! makes no difference, and the archive can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = handlescope_fuzz::etl::read(bytes);
});
