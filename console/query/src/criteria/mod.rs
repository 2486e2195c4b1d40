//! Criteria of queries: plain values, whatever command or format they come from.

mod acquisitions;
mod columns;
mod groups;
mod lists;
mod processes;

pub use self::acquisitions::{AcquisitionCriteria, CountOrder, MapMode};
pub use self::columns::{GroupColumn, GroupKey, KeyKind, StackNames};
pub use self::groups::{GroupCriteria, StackTrims, Stat};
pub use self::lists::{
    DiffCriteria, EventCriteria, ModuleCriteria, PickedSuspect, StackCriteria, WhyCriteria,
};
pub use self::processes::{NewProcess, ProcessCriteria, ProcessListCriteria, ProcessOrder};
