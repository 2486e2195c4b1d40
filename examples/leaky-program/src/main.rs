//! A Windows program that leaks handles on purpose, to prove that handlescope finds them.
//!
//! `leaky-program TRUTH.ndjson [SECONDS [--wait]]` runs for 10 seconds by default. It opens and closes handles of many
//! types, views, heap blocks, pages and GDI and USER objects, and writes down each call. With `--wait` it starts after
//! a line on its standard input. At the end it waits until its standard input ends, so that the leaks are still open
//! when a recording ends. Part of it runs in a child process, which exits early and closes nothing.

#[cfg(windows)]
#[allow(unsafe_code, reason = "the functions of Windows take pointers")]
mod windows;

fn main() -> std::process::ExitCode {
    #[cfg(windows)]
    return windows::main();
    #[cfg(not(windows))]
    {
        // The binary does nothing else on other systems.
        eprintln!("leaky-program runs on Windows, or under Wine");
        std::process::ExitCode::from(2)
    }
}
