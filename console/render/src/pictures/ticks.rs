//! Round numbers on the axes of pictures.

/// Maximum number of ticks on an axis.
const MOST: f64 = 8.0;

/// Multiples of a round step, for an axis.
#[derive(Debug, PartialEq)]
pub struct Ticks {
    pub values: Vec<f64>,
    /// Number of decimals that tells them apart.
    pub decimals: usize,
}

/// Which numbers count as round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundNumbers {
    /// 1, 2 or 5 times a power of ten.
    Decimal,
    /// The same, without fractions.
    Whole,
    /// Powers of two, because units of bytes are powers of two.
    Binary,
}

impl Ticks {
    /// Returns the multiples of a round step between two numbers; takes the smallest step that does not give too many.
    pub fn new(low: f64, high: f64, round: RoundNumbers) -> Self {
        let span = high - low;
        if !span.is_finite() || span <= 0.0 {
            return Self { values: vec![low], decimals: 0 };
        }
        let step = round.step(span / MOST);
        let (first, last) =
            ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let values = (first..=last).map(|number| number as f64 * step);
        // Far from 0, numbers do not have enough digits for the step.
        let values = values.filter(|value| (low - step..=high + step).contains(value));
        // For example, the logarithm of 0.2 is -0.7.
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        Self { values: values.collect(), decimals }
    }
}

impl RoundNumbers {
    /// Returns the smallest round number that is at least `least`.
    fn step(self, least: f64) -> f64 {
        match self {
            Self::Binary => least.max(1.0).log2().ceil().exp2(),
            Self::Whole => Self::Decimal.step(least.max(1.0)),
            Self::Decimal => {
                let power = 10_f64.powf(least.log10().floor());
                let step = [1.0, 2.0, 5.0]
                    .map(|digit| digit * power)
                    .into_iter()
                    .find(|step| *step >= least * (1.0 - 1e-9));
                step.unwrap_or(10.0 * power)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (low, high, round, expected) in [
            (0.0, 19.0, RoundNumbers::Whole, &[0.0, 5.0, 10.0, 15.0][..]),
            (0.0, 3.0, RoundNumbers::Whole, &[0.0, 1.0, 2.0, 3.0]),
            (0.0, 8.0, RoundNumbers::Whole, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
            (-0.5, 0.5, RoundNumbers::Decimal, &[-0.4, -0.2, 0.0, 0.2, 0.4]),
            (
                0.0,
                5_000_000.0,
                RoundNumbers::Binary,
                &[0.0, 1_048_576.0, 2_097_152.0, 3_145_728.0, 4_194_304.0],
            ),
            (7.0, 7.0, RoundNumbers::Decimal, &[7.0]),
            (0.0, f64::INFINITY, RoundNumbers::Decimal, &[0.0]),
            (1e15, 1e15 + 1e-9, RoundNumbers::Decimal, &[1e15]),
            (-9e18, 9e18, RoundNumbers::Whole, &[-5e18, 0.0, 5e18]),
        ] {
            let values = Ticks::new(low, high, round).values;
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
            assert!(
                values.len() == expected.len() && values.iter().zip(expected).all(is_near),
                "{low} to {high}: {values:?}"
            );
        }
    }

    #[test]
    fn digits_tell_neighbours_apart() {
        for (high, decimals) in [(12.0, 0), (1.0, 1), (0.02, 3), (4.0e6, 0)] {
            assert_eq!(Ticks::new(0.0, high, RoundNumbers::Decimal).decimals, decimals, "{high}");
        }
    }
}
