//! A program for Windows that leaks handles on purpose, to prove that they are found.
//!
//! `leaky-program TRUTH.ndjson [SECONDS [--wait]]` opens and closes handles of many types, views, heap blocks, pages and GDI and
//! USER objects for some seconds, 10 by default, and writes down each call (after a line on its standard input, with `--wait`). Then it waits until its standard input
//! ends, so that what leaks is still open when a recording ends. A part of it runs in a child process, which exits early
//! and closes nothing.

#[cfg(windows)]
#[allow(unsafe_code, reason = "the functions of Windows take pointers")]
mod windows;

fn main() -> std::process::ExitCode {
    #[cfg(windows)]
    return windows::main();
    #[cfg(not(windows))]
    {
        // The only output of this binary elsewhere.
        eprintln!("leaky-program runs on Windows, or under Wine");
        std::process::ExitCode::from(2)
    }
}
