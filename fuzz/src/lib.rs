//! What the fuzz targets do with their input. `tests/tests/it/fuzz_bodies.rs` includes these files by path and runs
//! them on seeds and damaged seeds.

pub mod archive;
pub mod etl;
pub mod metadata;
pub mod sources;
pub mod symbols;
