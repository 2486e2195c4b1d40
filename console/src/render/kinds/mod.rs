//! The answers of the kinds as tables, one file per kind.

mod events;
mod frame;
mod module;
mod objects;
mod process;
mod stack;
mod stats;
mod symbols;
mod version;

pub(crate) use self::frame::write_frame;
pub use self::{
    frame::frame,
    module::modules,
    objects::object_ref,
    process::processes,
    stack::call_stacks,
    stats::{properties, stats},
    symbols::symbols,
    version::versions,
};

/// The number of a file as a column has it.
fn index(file: usize) -> u32 {
    u32::try_from(file).unwrap_or(u32::MAX)
}
