//! Values of options: ranges with units, numbers, limits, and suspect ids.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use super::ValueError;
use handlescope_model::stable_hash::name_of;

/// A range of times or durations, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Nanoseconds.
    pub min_ns: i64,
    /// Nanoseconds; `i64::MAX` if only a minimum was given.
    pub max_ns: i64,
}

impl TimeRange {
    /// The range to compare event times with.
    pub fn nanoseconds(&self) -> RangeInclusive<i64> {
        self.min_ns..=self.max_ns
    }

    /// Reads `min [max]`.
    pub fn parse(min: &str, max: Option<&str>) -> Result<TimeRange, ValueError> {
        let max_ns = max.map_or(Ok(i64::MAX), nanoseconds)?;
        let range = TimeRange { min_ns: nanoseconds(min)?, max_ns };
        if range.min_ns > range.max_ns {
            return Err(ValueError::Backwards { value: both(min, max) });
        }
        Ok(range)
    }
}

impl fmt::Display for TimeRange {
    /// Formats the range exactly, as an option takes it: `1.5s`, or `1.5s 2s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: i64| {
            let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            let (whole, fraction) = (ns / NS_PER_SECOND as u64, ns % NS_PER_SECOND as u64);
            let text = format!("{sign}{whole}.{fraction:09}");
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        };
        f.write_str(&seconds(self.min_ns))?;
        match self.max_ns {
            i64::MAX => Ok(()),
            max_ns => write!(f, " {}", seconds(max_ns)),
        }
    }
}

/// A range of whole numbers (ids, bytes), both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRange {
    /// The smallest number.
    pub min: u64,
    /// The largest number; `u64::MAX` if only a minimum was given.
    pub max: u64,
}

/// Units a [`CountRange`] may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountUnit {
    /// Plain numbers only.
    None,
    /// `B`, `KB` = 1000, `KiB` = 1024 and so on.
    Bytes,
}

impl CountRange {
    /// Whether a number is in the range.
    pub fn contains(&self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }

    /// Reads `min [max]`.
    pub fn parse(unit: CountUnit, min: &str, max: Option<&str>) -> Result<CountRange, ValueError> {
        let count = |text: &str| match unit {
            CountUnit::None => whole(text),
            CountUnit::Bytes => bytes(text),
        };
        let range = CountRange { min: count(min)?, max: max.map_or(Ok(u64::MAX), count)? };
        if range.min > range.max {
            return Err(ValueError::Backwards { value: both(min, max) });
        }
        Ok(range)
    }
}

/// `n [skip]`: skip the `skip` largest rows, then take the next `take`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopN {
    /// Rows to show.
    pub take: usize,
    /// How many of the largest rows to leave out.
    pub skip: usize,
}

impl TopN {
    /// Reads `n [skip]`.
    pub fn parse(take: &str, skip: Option<&str>) -> Result<TopN, ValueError> {
        let rows = |text: &str| {
            usize::try_from(whole(text)?).map_err(|_| ValueError::TooLarge { value: text.into() })
        };
        Ok(TopN { take: rows(take)?, skip: skip.map_or(Ok(0), rows)? })
    }

    /// Returns which of `count` rows to show.
    pub fn range(self, count: usize) -> Range<usize> {
        let end = self.skip.saturating_add(self.take).min(count);
        self.skip.min(end)..end
    }
}

/// Units of time in nanoseconds.
const TIME_UNITS: &[(&str, i64)] = &[
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("seconds", NS_PER_SECOND),
    ("second", NS_PER_SECOND),
    ("s", NS_PER_SECOND),
];

/// Nanoseconds per second, the default unit of a time.
const NS_PER_SECOND: i64 = 1_000_000_000;

/// Decimals that count. More do not change the rounded nanoseconds, and seconds with this many fit into 128 bits.
const FRACTION_DIGITS: usize = 27;

/// Units of size in bytes.
const BYTE_UNITS: &[(&str, f64)] = &[
    ("bytes", 1.0),
    ("byte", 1.0),
    ("kb", 1e3),
    ("kib", 1024.0),
    ("mb", 1e6),
    ("mib", 1_048_576.0),
    ("gb", 1e9),
    ("gib", 1_073_741_824.0),
    ("tb", 1e12),
    ("tib", 1_099_511_627_776.0),
    ("b", 1.0),
];

/// Integers up to this are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a 64-bit hexadecimal number, optionally prefixed with `0x` or `&H`.
pub fn address(text: &str) -> Result<u64, ValueError> {
    let digits = ["0x", "0X", "&h", "&H"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text)
        .replace('`', ""); // WinDbg writes addresses as ffff8100`08be66f0
    let hexadecimal = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    u64::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| hexadecimal)
        .ok_or_else(|| ValueError::NoAddress { value: text.to_owned() })
}

/// Reads a time with an optional unit, in nanoseconds. The result is exact, so that an event's time compares equal to
/// the same time as typed.
///
/// A fraction of a nanosecond is rounded, halves away from 0. A time too large for the integer becomes the largest or
/// smallest one, which is what the user means.
pub fn nanoseconds(text: &str) -> Result<i64, ValueError> {
    if text.contains(':') && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(ValueError::Clock { value: text.to_owned() });
    }
    let (number, scale) = split_unit(text, TIME_UNITS, "a valid time (s, ms, us, ns)")?;
    let scale = i128::from(scale.unwrap_or(NS_PER_SECOND));
    let (is_negative, whole, fraction) = decimal_digits(number, text)?;
    let digits = |digits: &str| {
        digits.bytes().fold(0, |number: i128, digit| {
            number.saturating_mul(10).saturating_add(i128::from(digit - b'0'))
        })
    };
    let fraction = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let divisor = 10_i128.pow(fraction.len() as u32);
    let fraction_ns = (2 * digits(fraction) * scale + divisor) / (2 * divisor);
    let ns = digits(whole).saturating_mul(scale).saturating_add(fraction_ns);
    let ns = if is_negative { -ns } else { ns };
    Ok(ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// Reads a duration in nanoseconds, which must not be negative.
pub fn length(text: &str) -> Result<i64, ValueError> {
    match nanoseconds(text)? {
        ..0 => Err(ValueError::Negative { value: text.to_owned() }),
        ns => Ok(ns),
    }
}

/// Splits the unit off a number, and returns the unit's scale if there is one.
fn split_unit<'a, T: Copy>(
    text: &'a str,
    units: &[(&str, T)],
    expected: &'static str,
) -> Result<(&'a str, Option<T>), ValueError> {
    let letters = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = text.get(letters.len()..).unwrap_or_default();
    if unit.is_empty() {
        return Ok((text, None));
    }
    let scale = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    match scale {
        Some((_, scale)) if !letters.is_empty() => Ok((letters, Some(*scale))),
        _ => Err(ValueError::NoUnit { value: text.to_owned(), expected }),
    }
}

/// Splits a decimal number into sign, integer part and fraction. The decimal separator is a point in any locale. `text`
/// is quoted in the error.
fn decimal_digits<'a>(number: &'a str, text: &str) -> Result<(bool, &'a str, &'a str), ValueError> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut bytes = whole.bytes().chain(fraction.bytes()).peekable();
    if bytes.peek().is_some() && bytes.all(|digit| digit.is_ascii_digit()) {
        Ok((digits.len() < number.len(), whole, fraction))
    } else {
        Err(ValueError::NoNumber { value: text.to_owned() })
    }
}

/// Reads a decimal number with a point. `text` is quoted in the error.
fn decimal(number: &str, text: &str) -> Result<f64, ValueError> {
    decimal_digits(number, text)?;
    let value = number.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| ValueError::NoNumber { value: text.to_owned() })
}

/// Reads a whole number without sign.
pub fn whole(text: &str) -> Result<u64, ValueError> {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
        return text.parse().map_err(|_| ValueError::TooLarge { value: text.to_owned() });
    }
    Err(ValueError::NotWhole { value: text.to_owned() })
}

/// Reads a whole number of at least 1.
pub fn number(text: &str) -> Result<u64, ValueError> {
    match whole(text)? {
        0 => Err(ValueError::Zero),
        number => Ok(number),
    }
}

/// Reads a number of bytes. A fraction is fine if the result is whole (`1.5MB`).
pub fn bytes(text: &str) -> Result<u64, ValueError> {
    let (number, scale) =
        split_unit(text, BYTE_UNITS, "a valid size (B, KB, KiB, MB, MiB, GB, GiB)")?;
    let Some(scale) = scale.filter(|scale| *scale != 1.0) else { return whole(number) };
    let bytes = decimal(number, text)? * scale;
    if bytes < 0.0 || bytes.fract() != 0.0 {
        let expected = "a whole number of bytes";
        return Err(ValueError::NoUnit { value: text.to_owned(), expected });
    }
    if bytes > EXACT {
        return Err(ValueError::TooLarge { value: text.to_owned() });
    }
    Ok(bytes as u64)
}

fn both(min: &str, max: Option<&str>) -> String {
    max.map_or_else(|| min.to_owned(), |max| format!("{min} {max}"))
}

/// Hexadecimal digits of an id. Equal ids are unlikely even among a hundred thousand suspects of a trace.
const DIGITS: usize = 10;

/// Minimum number of digits of an id's beginning.
const MIN_LENGTH: usize = 4;

/// The id of a suspect or its beginning: hexadecimal digits in lower case. If the id depends on names from symbols, the
/// id without symbols may follow after a hyphen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuspectId {
    id: String,
    /// The id without names from symbols, if it differs.
    other: Option<String>,
}

impl SuspectId {
    /// Reads an id or its beginning, in any case.
    ///
    /// # Errors
    /// If it has too few or too many digits, or other characters.
    pub fn new(text: &str) -> Result<SuspectId, ValueError> {
        let is_id = |text: &&str| {
            (MIN_LENGTH..=DIGITS).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let (id, other) = match text.split_once('-') {
            Some((id, other)) => (id, Some(other)),
            None => (text, None),
        };
        let are_ids = is_id(&id) && other.as_ref().is_none_or(is_id);
        are_ids
            .then(|| SuspectId {
                id: id.to_ascii_lowercase(),
                other: other.map(str::to_ascii_lowercase),
            })
            .ok_or_else(|| ValueError::NoSuspect { value: text.to_owned() })
    }

    /// Computes the id from the parts that tell this suspect from others. It is the same in every version.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> SuspectId {
        let mut id = name_of(parts);
        id.truncate(DIGITS);
        SuspectId { id, other: None }
    }

    /// Adds the suspect's id without names from symbols.
    pub fn with_other(self, other: SuspectId) -> SuspectId {
        let other = Some(other.id).filter(|other| *other != self.id);
        SuspectId { other, ..self }
    }

    /// Whether one of a suspect's ids equals this one or starts with it.
    pub fn begins(&self, own: &SuspectId) -> bool {
        let asked = [Some(&self.id), self.other.as_ref()].into_iter().flatten();
        let begins = |id: &String| asked.clone().any(|asked| id.starts_with(asked.as_str()));
        begins(&own.id) || own.other.as_ref().is_some_and(begins)
    }

    /// The id, without the one for missing symbols.
    pub fn text(&self) -> &str {
        &self.id
    }

    /// The suspect's id without names from symbols, if it differs.
    pub fn without_symbols(&self) -> Option<&str> {
        self.other.as_deref()
    }
}

impl fmt::Display for SuspectId {
    /// Writes both ids, so that a command with them works with and without symbols.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        self.other.iter().try_for_each(|other| write!(f, "-{other}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(min: &str, max: Option<&str>) -> Result<(i64, i64), ValueError> {
        TimeRange::parse(min, max).map(|range| (range.min_ns, range.max_ns))
    }

    #[test]
    fn times_take_units_and_the_maximum_may_be_missing() {
        for (min, max, expected) in [
            ("1.5s", Some("2500ms"), (1_500_000_000, 2_500_000_000)),
            ("12", Some("12.5"), (12_000_000_000, 12_500_000_000)),
            ("0", Some("10MS"), (0, 10_000_000)),
            ("9999", None, (9_999_000_000_000, i64::MAX)),
            ("-0.5", Some("1seconds"), (-500_000_000, 1_000_000_000)),
            (".5", Some("1.Second"), (500_000_000, 1_000_000_000)),
            ("250us", Some("1000000ns"), (250_000, 1_000_000)),
        ] {
            assert_eq!(times(min, max), Ok(expected), "{min} {max:?}");
        }
    }

    #[test]
    fn a_time_of_any_length_is_read_to_the_nanosecond() {
        let mut random = 7_u64;
        for _ in 0..1_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ns = (random >> 1) as i64; // up to 292 years
            let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            for text in [
                format!("{ns}ns"),
                format!("{seconds}.{rest:09}"),
                format!("{seconds}.{rest:09}s"),
                format!("{}.{:06}ms", ns / 1_000_000, ns % 1_000_000),
                format!("{}.{:03}us", ns / 1_000, ns % 1_000),
            ] {
                assert_eq!(times(&text, None), Ok((ns, i64::MAX)), "{text}");
                assert_eq!(times(&format!("-{text}"), None), Ok((-ns, i64::MAX)), "-{text}");
            }
        }
    }

    #[test]
    fn a_range_of_times_is_written_as_it_may_be_given() {
        for (text, min, max) in [
            ("1s", "1000ms", None),
            ("0.25s 12.000000001s", "250ms", Some("12000000001ns")),
            ("-0.5s", "-500ms", None),
            ("0s", "0", None),
        ] {
            let range = TimeRange::parse(min, max).expect(min);
            assert_eq!(range.to_string(), text);
            let (min, max) =
                text.split_once(' ').map_or((text, None), |(min, max)| (min, Some(max)));
            assert_eq!(TimeRange::parse(min, max), Ok(range));
        }
    }

    #[test]
    fn a_part_of_a_nanosecond_is_rounded_and_what_is_too_long_is_the_longest() {
        let nines = "9".repeat(400);
        for (text, expected) in [
            ("0.5ns", 1),
            ("-0.5ns", -1),
            ("0.4999ns", 0),
            ("2246400.0000000014", 2_246_400_000_000_001),
            ("2246400.0000000015", 2_246_400_000_000_002),
            (&format!("0.{nines}ns"), 1),
            (&nines, i64::MAX),
            (&format!("-{nines}.{nines}"), i64::MIN),
        ] {
            assert_eq!(nanoseconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_bad_time_says_why() {
        for (min, max, message) in [
            ("0,5", None, "'0,5' is not a number (write 0.5 with a point, without separators)"),
            ("nan", None, "'nan' is not a valid time (s, ms, us, ns)"),
            ("1e3", None, "'1e3' is not a number (write 0.5 with a point, without separators)"),
            ("10MB", None, "'10MB' is not a valid time (s, ms, us, ns)"),
            (
                "10:30:00",
                None,
                "'10:30:00' is a time of day: give seconds since the session started, which -TimeFmt s shows",
            ),
            ("ms", None, "'ms' is not a valid time (s, ms, us, ns)"),
            ("2", Some("1"), "'2 1' ends before it begins"),
            ("1", Some("ObjectRef"), "'ObjectRef' is not a valid time (s, ms, us, ns)"),
            ("", None, "'' is not a number (write 0.5 with a point, without separators)"),
            (".", None, "'.' is not a number (write 0.5 with a point, without separators)"),
            ("-ns", None, "'-ns' is not a number (write 0.5 with a point, without separators)"),
            ("1.2.3", None, "'1.2.3' is not a number (write 0.5 with a point, without separators)"),
        ] {
            let error = times(min, max).expect_err(min);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn a_length_of_time_is_not_negative() {
        assert_eq!(length("500us"), Ok(500_000));
        assert_eq!(length("0"), Ok(0));
        let error = length("-5").expect_err("negative");
        assert_eq!(error.to_string(), "'-5' is negative; write 0 or more, as in 500us");
    }

    #[test]
    fn sizes_take_decimal_and_binary_units() {
        for (text, expected) in [
            ("4096", 4096),
            ("4KiB", 4096),
            ("4kb", 4000),
            ("10MB", 10_000_000),
            ("1.5MB", 1_500_000),
            ("1MiB", 1_048_576),
            ("2GiB", 2_147_483_648),
            ("1TiB", 1_099_511_627_776),
            ("7B", 7),
            ("7bytes", 7),
        ] {
            let range = CountRange::parse(CountUnit::Bytes, text, None);
            assert_eq!(range, Ok(CountRange { min: expected, max: u64::MAX }), "{text}");
        }
    }

    #[test]
    fn a_bad_count_says_why() {
        for (unit, text, message) in [
            (CountUnit::Bytes, "0.5B", "'0.5' is not a whole number; write digits only, as in 20"),
            (CountUnit::Bytes, "1.0001KB", "'1.0001KB' is not a whole number of bytes"),
            (CountUnit::Bytes, "10ms", "'10ms' is not a valid size (B, KB, KiB, MB, MiB, GB, GiB)"),
            (CountUnit::Bytes, "99999999TB", "'99999999TB' is too large"),
            (CountUnit::None, "-5", "'-5' is not a whole number; write digits only, as in 20"),
            (CountUnit::None, "1KB", "'1KB' is not a whole number; write digits only, as in 20"),
            (CountUnit::None, "abc", "'abc' is not a whole number; write digits only, as in 20"),
            (CountUnit::None, "99999999999999999999", "'99999999999999999999' is too large"),
        ] {
            let error = CountRange::parse(unit, text, None).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn ids_and_rows_are_plain_numbers() {
        let ids = CountRange::parse(CountUnit::None, "500", Some("600"));
        assert_eq!(ids, Ok(CountRange { min: 500, max: 600 }));
        assert_eq!(TopN::parse("5", None), Ok(TopN { take: 5, skip: 0 }));
        assert_eq!(TopN::parse("5", Some("10")), Ok(TopN { take: 5, skip: 10 }));
    }

    #[test]
    fn an_address_goes_with_and_without_prefix() {
        for text in ["0x1B544000010", "&H1b544000010", "1B544000010", "000001b5`44000010"] {
            assert_eq!(address(text), Ok(0x1B5_4400_0010), "{text}");
        }
        for text in ["0x", "", "-5", "+5", "0xG", "0x1FFFFFFFFFFFFFFFF", "0x0x1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_is_four_to_ten_hexadecimal_digits_in_any_case() {
        for (text, id) in [("3F2a", "3f2a"), ("0123456789", "0123456789")] {
            assert_eq!(SuspectId::new(text).map(|suspect| suspect.to_string()), Ok(id.to_owned()));
        }
        for text in ["", "3f2", "3f2g", "0123456789a", "0x3f2a", "3f2é", "-3f2a"] {
            let refused = ValueError::NoSuspect { value: text.to_owned() };
            assert_eq!(SuspectId::new(text), Err(refused), "{text}");
        }
    }

    #[test]
    fn an_id_is_the_same_in_every_build_and_found_by_its_beginning() {
        let id = SuspectId::from_parts([&b"/traces"[..]]);
        assert_eq!(id.text(), "a5b665369e");
        for (text, begins) in [("a5b6", true), ("A5B665369E", true), ("a5b7", false)] {
            let typed = SuspectId::new(text);
            assert_eq!(typed.map(|typed| typed.begins(&id)), Ok(begins), "{text}");
        }
    }
}
