//! What is fuzzed, without what takes a quarter of an hour to build.
//!
//! The module `symbols` is included by its path, as it needs none of the crates for tables that the
//! rest of `handlescope-extract` is built on. The fuzzer's instrumentation would apply to all of them.
//! Targets about tables are a feature of their own; what they do is tested in `tests/`, too.

#[cfg(feature = "tables")]
pub mod archive;
#[cfg(feature = "tables")]
pub mod import;
#[cfg(feature = "tables")]
pub mod metadata;
#[path = "../../extract/src/symbols/mod.rs"]
pub mod symbols;
