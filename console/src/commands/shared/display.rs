//! Options that say how times are printed, for every kind that prints some.

use crate::{
    grammar::{Opt, Take},
    settings::DisplayArgs,
};

/// Arguments of a query that prints times.
pub(crate) trait ShowsTimes {
    fn display(&mut self) -> &mut DisplayArgs;
}

pub(crate) const fn time_format_option<A: ShowsTimes>() -> Opt<A> {
    Opt {
        names: &["-TimeFmt"],
        help: "times as s, Local, LocalTime, UTC, UTCTime, Here or HereTime",
        details: "Overrides .timefmt.",
        example: "-TimeFmt s",
        take: Take::TimeFormat(|args| &mut args.display().time_format),
    }
}

pub(crate) const fn time_digits_option<A: ShowsTimes>() -> Opt<A> {
    Opt {
        names: &["-TimeDigits"],
        help: "decimal places of seconds, 0 to 6",
        details: "For times and lifetimes; 6 unless it is given here or with .timedigits.",
        example: "-TimeDigits 3",
        take: Take::Digits(|args| &mut args.display().time_digits),
    }
}
