//! No extract, however damaged or malicious, makes its reader panic, hang or exhaust memory.

#![no_main]

use std::panic;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A panic of the Parquet decoder is no failure as long as the library catches it. One that it does not catch ends
    // the fuzzer whatever the hook.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
    let _ = handlescope_fuzz::archive::read(bytes);
});
