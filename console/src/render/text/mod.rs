//! Text in ETWAnalyzer's shape, so that its users read it at once and their scripts keep working.

mod call_stacks;
mod event;
mod frame;
mod numbers;
mod object_ref;
mod process;
mod stack;
mod stats;
mod symbols;
mod tables;
mod totals;
mod versions;

pub(super) use self::call_stacks::call_stacks;
pub(super) use self::frame::frame;
pub(super) use self::object_ref::object_ref;
pub(super) use self::process::ProcessStyle;
pub(super) use self::stack::StackStyle;
pub(super) use self::stats::stats;
pub(super) use self::symbols::symbols;
pub(super) use self::tables::{modules, processes};
pub(super) use self::versions::versions;
