//! What the targets do with their input. It is done with seeds and damaged seeds in `tests/tests/it/fuzz_bodies.rs`, too,
//! which includes these files by their paths.

pub mod archive;
pub mod etl;
pub mod metadata;
pub mod sources;
pub mod symbols;
