//! Repeatable damage (to come).
