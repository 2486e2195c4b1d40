//! Large traces (to come).
