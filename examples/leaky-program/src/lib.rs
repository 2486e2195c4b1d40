//! The record of what `leaky-program` did, shared by the program that writes it and the tests that read it.

pub mod truth;
