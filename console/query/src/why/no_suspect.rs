//! Reasons why a group that leaks is no suspect.

use crate::growth::{Growth, Verdict};

/// The reason why a group is no suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// None is older than one that was closed.
    Young,
    /// Some are older, but chance may explain it.
    Chance,
    /// Lifetimes are too long for the time of the trace.
    LongLived,
    /// The commits of the group are a suspect.
    Committed,
}

/// Counts of a group that is no suspect.
#[derive(Debug, Clone, Copy)]
pub struct NoSuspect {
    pub reason: Reason,
    pub leaked: u64,
    pub at_exit: u64,
    pub older: u64,
}

impl NoSuspect {
    pub fn new(growth: &Growth, leaked: u64, at_exit: u64) -> Self {
        let older = growth.evidence.outlived.older as u64;
        let reason = match (growth.verdict, older) {
            (Verdict::Balanced, 0) => Reason::Young,
            (Verdict::Balanced, _) => Reason::Chance,
            _ => Reason::LongLived,
        };
        Self { reason, leaked, at_exit, older }
    }
}
