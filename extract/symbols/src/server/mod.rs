//! Symbols from servers: each file is downloaded by one process at a time, checked, and put into the cache.

pub mod download_lock;
#[cfg(test)]
mod download_tests;
pub mod downloads;
pub mod install;
pub mod missing;
pub mod partial;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod slow_server_tests;
#[cfg(test)]
pub mod test_server;
mod transfer;
