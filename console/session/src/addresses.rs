//! The limit for the addresses of the process (`ulimit -v`), beyond which an allocation ends the program.

/// Bytes of addresses that the process may have; `None` without a limit.
#[cfg(unix)]
pub fn most_addresses() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(not(unix))]
pub fn most_addresses() -> Option<u64> {
    None
}
