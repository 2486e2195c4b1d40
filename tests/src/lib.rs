//! Writes `.etl` trace files for tests, benchmarks and sample traces.
//!
//! The writer shares no code with the reader. It is built from the description of the format alone, so that a mistake
//! in the reader cannot hide in its fixtures.
//!
//! The layers, from bottom to top:
//! * [`bytes`]: little-endian byte strings,
//! * [`header`]: every kind of event header around a payload,
//! * [`payload`]: one builder per event family,
//! * [`file`](mod@file): per-processor buffers, compression, circular and preallocated files, clocks, loss,
//! * [`scenario`]: processes, modules, handles and stacks at times in nanoseconds,
//! * [`bench`](mod@bench): large traces written in bounded memory, with the counts to expect,
//! * [`allocations`]: a trace with allocations,
//! * [`fleet`]: traces of many machines and builds, and the truth about them,
//! * [`planted`]: traces with planted leaks for any seed, and the truth about them,
//! * [`mod@windows_handles`]: a trace with everything that Windows does with handles,
//! * [`corrupt`]: repeatable damage,
//! * [`data`]: the published traces, for tests marked [`needs_data`],
//! * [`dump`]: minidumps of processes,
//! * [`containers`]: archives with traces,
//! * [`folders`]: reading and copying whole folders,
//! * [`functions`] and [`stacks`]: addresses and stacks of the sample's modules,
//! * [`linked`]: images linked by lld-link,
//! * [`foreign`]: ETWAnalyzer extracts,
//! * [`binary`]: the program itself, in a pipe, and what it prints,
//! * [`mcp`]: the program as a server for agents,
//! * [`symbol_server`]: a PDB server, good or bad,
//! * [`thorough`]: how many cases a long test tries,
//! * `terminal`: the program in a terminal (on Unix).
//!
//! Mistakes of a test author panic, for example an event larger than a buffer.

pub use handlescope_needs::{
    needs_bash, needs_chromium, needs_data, needs_duckdb, needs_linker, needs_mcp, needs_pandas,
    needs_protobuf, needs_spark,
};

pub mod acceptance;
pub mod allocations;
pub mod bench;
pub mod binary;
pub mod bytes;
pub mod containers;
pub mod corrupt;
pub mod data;
pub mod dump;
pub mod file;
pub mod fleet;
pub mod folders;
pub mod foreign;
pub mod functions;
pub mod header;
pub mod linked;
pub mod mcp;
pub mod pairs;
pub mod payload;
pub mod planted;
pub mod published;
pub mod rng;
pub mod scenario;
pub mod stacks;
pub mod symbol_server;
#[cfg(unix)]
pub mod terminal;
pub mod thorough;
pub mod windows_handles;
