//! A tiny repeatable random number generator.

/// Xorshift64* generator: equal seeds give equal sequences on every machine.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator for this seed; every seed is valid.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must not be 0, and neighbouring seeds must not start with similar numbers.
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number in `0..limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high half of the product is unbiased enough for fixtures and needs no division.
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns an index into a list of `len` items, or 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn equal_seeds_give_equal_numbers_below_the_limit() {
        let (mut a, mut b, mut c) = (Rng::new(7), Rng::new(7), Rng::new(8));
        let list: Vec<u64> = (0..100).map(|_| a.below(10)).collect();
        assert!(list.iter().all(|n| *n < 10));
        assert_eq!(list, (0..100).map(|_| b.below(10)).collect::<Vec<_>>());
        assert_ne!(list, (0..100).map(|_| c.below(10)).collect::<Vec<_>>());
    }
}
