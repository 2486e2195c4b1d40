//! No PDB or image, however damaged, makes the resolve step panic, hang or exhaust memory.

#![no_main]

use std::panic;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A panic of the parser is no failure as long as the library catches it. One that it does not catch ends the fuzzer
    // whatever the hook.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
    let _ = handlescope_fuzz::symbols::resolve(bytes);
});
