//! The published traces (to come).
