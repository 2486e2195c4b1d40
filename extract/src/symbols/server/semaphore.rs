//! A limit on how much is under way at once.

use std::sync::{Condvar, Mutex, PoisonError};

use handlescope_model::guard::lock;

/// A weighted semaphore: the weights of the permits that are given out stay below a limit.
pub(in crate::symbols) struct Semaphore {
    limit: u64,
    inside: Mutex<u64>,
    left: Condvar,
}

/// Given back when it is dropped.
pub(in crate::symbols) struct Permit<'a> {
    semaphore: &'a Semaphore,
    weight: u64,
}

impl Semaphore {
    pub(in crate::symbols) fn new(limit: u64) -> Self {
        Self { limit, inside: Mutex::new(0), left: Condvar::new() }
    }

    /// Waits for a permit. What is heavier than the limit goes alone.
    pub(in crate::symbols) fn acquire(&self, weight: u64) -> Permit<'_> {
        let is_full = |inside: &mut u64| *inside != 0 && inside.saturating_add(weight) > self.limit;
        let inside = self.left.wait_while(lock(&self.inside), is_full);
        *inside.unwrap_or_else(PoisonError::into_inner) += weight;
        Permit { semaphore: self, weight }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.semaphore.inside) -= self.weight;
        self.semaphore.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn the_limit_holds_and_what_is_too_heavy_goes_alone() {
        let (semaphore, inside) = (Semaphore::new(10), AtomicU64::new(0));
        thread::scope(|scope| {
            for weight in [4, 4, 4, 25, 4, 4, 4, 25, 10] {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || {
                    let _permit = semaphore.acquire(weight);
                    let now = inside.fetch_add(weight, Ordering::SeqCst) + weight;
                    assert!(now <= 10 || now == weight, "{now}");
                    thread::yield_now();
                    inside.fetch_sub(weight, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(*lock(&semaphore.inside), 0);
    }
}
