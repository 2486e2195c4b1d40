//! Counts, durations and names as they appear in sentences.

use std::fmt::{self, Display};

use handlescope_extract::finding_nouns;
use handlescope_model::tables::Warning;
use indicatif::{HumanBytes, HumanCount};

/// A count of something, with thousands separators and the right plural.
pub struct CountedNoun(pub u64, pub &'static str);

impl CountedNoun {
    /// The ending to add to the singular.
    pub fn plural(&self) -> &'static str {
        match self.1 {
            _ if self.0 == 1 => "",
            noun if noun.ends_with('s') => "es",
            _ => "s",
        }
    }
}

/// Describes a warning with its count and where it first occurred: "3 truncated buffers, first at offset 0x4000".
pub fn finding(warning: &Warning) -> String {
    let Warning { kind, count, first_offset, first_line } = warning;
    let shown = HumanCount(*count);
    let text = match finding_nouns(kind) {
        Some((["", text], rest)) => format!("{text}{rest}"),
        Some(([one, _], rest)) if *count == 1 => format!("{shown} {one}{rest}"),
        Some(([_, many], rest)) => format!("{shown} {many}{rest}"),
        None => format!("{shown} x {kind}"),
    };
    match (first_offset, first_line) {
        (Some(offset), _) => format!("{text}, first at offset 0x{offset:X}"),
        (None, Some(line)) => format!("{text}, first in line {}", HumanCount(*line)),
        (None, None) => text,
    }
}

impl fmt::Display for CountedNoun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", HumanCount(self.0), self.1, self.plural())
    }
}

/// A number of bytes in a suitable unit; negative if events say so.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub i64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", HumanBytes(self.0.unsigned_abs()))
    }
}

/// A duration in nanoseconds, printed in a suitable unit.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub i64);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The smallest duration for each unit: 90 min, 100 s, but 1.5 s.
        const UNITS: [(f64, f64, &str); 5] = [
            (172_800e9, 86_400e9, "days"),
            (7_200e9, 3_600e9, "h"),
            (120e9, 60e9, "min"),
            (1e9, 1e9, "s"),
            (1e6, 1e6, "ms"),
        ];
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        let ns = self.0 as f64;
        let unit = UNITS.into_iter().find(|(from, ..)| ns >= *from);
        let (_, unit, name) = unit.unwrap_or((0.0, 1e3, "µs"));
        write!(f, "{} {name}", digits(ns / unit))
    }
}

/// Formats a number with three significant digits, and at most six decimals.
fn digits(number: f64) -> String {
    let magnitude = number.abs().max(1e-4).log10().floor();
    let decimals = (2.0 - magnitude).max(0.0) as usize;
    format!("{number:.decimals$}")
}

/// Lists the first `max` names and how many more there are: `a, b and 3 more`.
pub fn listed(names: &[impl Display], max: usize) -> String {
    let (shown, rest) = names.split_at(names.len().min(max));
    let shown = shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if rest.is_empty() { shown } else { format!("{shown} and {} more", rest.len()) }
}

/// Lists all names: `a, b and c`.
pub fn joined(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        let texts = [(0, "free"), (1, "free"), (1200, "free"), (1, "process"), (2, "process")]
            .map(|(count, noun)| CountedNoun(count, noun).to_string());
        assert_eq!(texts, ["0 frees", "1 free", "1,200 frees", "1 process", "2 processes"]);
    }

    #[test]
    fn a_finding_has_its_number_and_the_noun_that_fits() {
        let text = |kind: &str, count| {
            finding(&Warning { kind: kind.to_owned(), count, ..Warning::default() })
        };
        let late = "event left out because its description came too late and there are too many";
        assert_eq!(
            [
                text("truncated buffer", 1),
                text("handle event of pid 0", 1_200),
                text("no stacks in this extract", 1),
                text(&format!("{late}: Contoso"), 2),
                text("a kind of the future", 3),
            ],
            [
                "1 truncated buffer",
                "1,200 handle events with process id 0, skipped",
                "no stacks in this extract",
                "2 events skipped, because there are too many and their descriptions came late: Contoso",
                "3 x a kind of the future",
            ]
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.004_567, 0.25, 9.94, 37.41, 563.9, 12_345.6].map(digits);
        assert_eq!(shown, ["0.00457", "0.250", "9.94", "37.4", "564", "12346"]);
    }

    #[test]
    fn durations_have_a_unit_that_fits() {
        let shown =
            [0, 1_500, 3_000_000, 1_600_000_000, 100_000_000_000, 558_000_000_000, i64::MAX]
                .map(|ns| Length(ns).to_string());
        assert_eq!(
            shown,
            ["0 s", "1.50 µs", "3.00 ms", "1.60 s", "100 s", "9.30 min", "106752 days"]
        );
    }
}
