//! Symbols from servers: each file is downloaded by one process at a time, checked, and put into the cache.

pub(super) mod download_lock;
#[cfg(test)]
mod download_tests;
pub(super) mod downloads;
pub(super) mod install;
pub(super) mod missing;
pub(super) mod partial;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod slow_server_tests;
#[cfg(test)]
pub(super) mod test_server;
mod transfer;
