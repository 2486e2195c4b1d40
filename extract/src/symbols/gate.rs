//! A limit on how much is under way at once.

use std::sync::{Condvar, Mutex, PoisonError};

use handlescope_model::guard::lock;

/// Lets threads pass as long as the weights of those inside stay below a limit.
pub(super) struct Gate {
    limit: u64,
    inside: Mutex<u64>,
    left: Condvar,
}

/// A thread inside; it leaves when this is dropped.
pub(super) struct Turn<'a> {
    gate: &'a Gate,
    weight: u64,
}

impl Gate {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, inside: Mutex::new(0), left: Condvar::new() }
    }

    /// Waits for a turn. What is heavier than the limit goes alone.
    pub(super) fn enter(&self, weight: u64) -> Turn<'_> {
        let is_full = |inside: &mut u64| *inside != 0 && inside.saturating_add(weight) > self.limit;
        let inside = self.left.wait_while(lock(&self.inside), is_full);
        *inside.unwrap_or_else(PoisonError::into_inner) += weight;
        Turn { gate: self, weight }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.gate.inside) -= self.weight;
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn the_limit_holds_and_what_is_too_heavy_goes_alone() {
        let (gate, inside) = (Gate::new(10), AtomicU64::new(0));
        thread::scope(|scope| {
            for weight in [4, 4, 4, 25, 4, 4, 4, 25, 10] {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    let _turn = gate.enter(weight);
                    let now = inside.fetch_add(weight, Ordering::SeqCst) + weight;
                    assert!(now <= 10 || now == weight, "{now}");
                    thread::yield_now();
                    inside.fetch_sub(weight, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(*lock(&gate.inside), 0);
    }
}
