//! The options of recordings. Every value is checked when the command line is read.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use handlescope_record::{
    BufferCount, BufferSize, Events, ObjectTypes, OptionError, ProviderSelection, RecordOptions,
    StopCondition, Target,
};
use thiserror::Error;

use super::stop::stop_condition;
use handlescope_session::paths::{has_extension, with_home};
use handlescope_session::values::{ValueError, bytes, nanoseconds, number, whole};

/// Headings of options that `record`, `live` and `wprp` share.
const EVENTS: &str = "What to record";
const BUFFERS: &str = "Buffers";
const END: &str = "When to end";

/// Options that `record`, `live` and `wprp` share: events to record, and buffers for them.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionArgs {
    /// Also record object reference counts; many more events than handles.
    #[arg(long, help_heading = EVENTS)]
    pub references: bool,

    /// Also record views of files that are mapped and unmapped.
    #[arg(long, help_heading = EVENTS)]
    pub mappings: bool,

    /// Also record VirtualAlloc and VirtualFree.
    #[arg(long, help_heading = EVENTS)]
    pub virtual_alloc: bool,

    /// Do not record stacks of closes: 30 to 40 % less data, but -DestroyStack finds nothing.
    #[arg(long, help_heading = EVENTS)]
    pub drop_close_stacks: bool,

    /// Buffer size, 4KiB to 16MiB [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = buffer_size, help_heading = BUFFERS)]
    pub buffer_size: Option<BufferSize>,

    /// Number of buffers, at least 2; Windows uses at least two per processor [default: 256;
    /// wprp has 768 for heaps, and 128 for GDI, USER and .NET].
    #[arg(long, value_name = "N", value_parser = buffer_count, help_heading = BUFFERS)]
    pub buffers: Option<BufferCount>,
}

/// Which handles `record` and `live` record.
#[derive(Debug, Clone, Default, Args)]
pub struct TypeArgs {
    /// Only handles of these object types, at most four, as in Event;File; 90 % of handle events are of Event.
    #[arg(long = "type", value_name = "TYPE;…", value_parser = ObjectTypes::parse, help_heading = EVENTS)]
    pub types: Option<ObjectTypes>,
}

/// .NET events that `record` and `wprp` record.
#[derive(Debug, Clone, Default, Args)]
pub struct DotNetArgs {
    /// Also record names of .NET methods; recording ends some seconds later, when .NET processes have listed them.
    #[arg(long, help_heading = EVENTS)]
    pub clr: bool,
}

/// The options of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Trace to write, NAME.etl.
    #[arg(value_name = "FILE", default_value = "handles.etl", value_parser = trace_name)]
    pub file: PathBuf,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub types: TypeArgs,

    #[command(flatten)]
    pub dot_net: DotNetArgs,

    /// Keep events in memory, overwriting the oldest, and write them at the end.
    #[arg(long, help_heading = BUFFERS)]
    pub ring: bool,

    /// End after this time: seconds, or with a unit (s, ms).
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = END)]
    pub duration: Option<Duration>,

    /// End when a process has more handles than this: 'pn leaky.exe handles > 5000'. May be given several times; the
    /// first one reached ends the recording.
    #[arg(long, value_name = "CONDITION", value_parser = stop_condition, conflicts_with = "ring", help_heading = END)]
    pub stop_when: Vec<StopCondition>,

    /// Extract the trace after recording; by default the terminal asks.
    #[arg(long)]
    pub extract: bool,

    /// Replace a trace that handlescope did not write.
    #[arg(long)]
    pub force: bool,

    /// Print the session's configuration as JSON without recording.
    #[arg(long)]
    pub dry_run: bool,
}

/// The options of `live`.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// Trace to replay, as with --replay.
    #[arg(value_name = "TRACE", group = REPLAYED)]
    pub trace: Option<PathBuf>,

    #[command(flatten)]
    pub session: SessionArgs,

    #[command(flatten)]
    pub types: TypeArgs,

    /// Minutes to keep closed handles. Open ones are always kept.
    #[arg(long, value_name = "MINUTES", default_value_t = 10, value_parser = minutes)]
    pub window: u32,

    /// End when a process has more handles than this, as for record.
    #[arg(long, value_name = "CONDITION", value_parser = stop_condition, help_heading = END)]
    pub stop_when: Vec<StopCondition>,

    /// Replay this trace as if its events came now; works anywhere.
    #[arg(long, value_name = "FILE", group = REPLAYED, help_heading = "Replay")]
    pub replay: Option<PathBuf>,

    /// Replay speed, as a factor [default: 1 on a terminal, else as fast as possible].
    #[arg(long, value_name = "N", requires = REPLAYED, value_parser = speed, help_heading = "Replay")]
    pub speed: Option<f64>,

    /// Print the session's configuration as JSON without showing anything.
    #[arg(long, conflicts_with = REPLAYED)]
    pub dry_run: bool,
}

/// The arguments that name a trace to replay; only one is allowed.
const REPLAYED: &str = "replayed";

/// The options of `wprp`.
#[derive(Debug, Args)]
pub struct WprpArgs {
    /// Profile to write, NAME.wprp; printed by default.
    #[arg(value_name = "FILE", value_parser = profile_name)]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    pub session: SessionArgs,

    /// Also record the heaps of these processes, such as 4711,815: millions of events.
    #[arg(long, value_name = "PID,…", value_delimiter = ',', help_heading = EVENTS)]
    pub heap_pids: Vec<u32>,

    /// Also record GDI and USER handles (Windows 10 build 18315 and later).
    #[arg(long, help_heading = EVENTS)]
    pub gdi_user: bool,

    #[command(flatten)]
    pub dot_net: DotNetArgs,

    /// Replace a file that handlescope did not write.
    #[arg(long)]
    pub force: bool,
}

impl WprpArgs {
    pub fn other_providers(&self) -> ProviderSelection {
        ProviderSelection {
            heap_pids: self.heap_pids.clone(),
            gdi_user: self.gdi_user,
            dot_net: self.dot_net.clr,
        }
    }
}

impl SessionArgs {
    /// Returns the events, the buffer size, and the number of buffers if given.
    pub fn events_and_buffers(&self) -> (Events, BufferSize, Option<BufferCount>) {
        let &SessionArgs { references, mappings, virtual_alloc, drop_close_stacks, .. } = self;
        let events = Events { references, mappings, virtual_alloc, drop_close_stacks };
        (events, self.buffer_size.unwrap_or_default(), self.buffers)
    }

    /// Returns these options as words of a command line.
    pub fn words(&self) -> String {
        let switches = [
            ("--references", self.references),
            ("--mappings", self.mappings),
            ("--virtual-alloc", self.virtual_alloc),
            ("--drop-close-stacks", self.drop_close_stacks),
        ];
        let mut words: String = switches
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| format!(" {name}"))
            .collect();
        if let Some(size) = self.buffer_size {
            words += &format!(" --buffer-size {}KiB", size.kib());
        }
        if let Some(count) = self.buffers {
            words += &format!(" --buffers {}", count.get());
        }
        words
    }

    fn options(&self, types: Option<&ObjectTypes>, target: Target) -> RecordOptions {
        let (events, buffer_size, buffers) = self.events_and_buffers();
        RecordOptions {
            events,
            types: types.cloned().unwrap_or_default(),
            dot_net: false,
            buffer_size,
            buffers: buffers.unwrap_or_default(),
            target,
            duration: None,
            stop_when: Vec::new(),
        }
    }
}

impl RecordArgs {
    pub fn options(&self) -> RecordOptions {
        let target = if self.ring { Target::Ring } else { Target::File };
        RecordOptions {
            dot_net: self.dot_net.clr,
            duration: self.duration,
            stop_when: self.stop_when.clone(),
            ..self.session.options(self.types.types.as_ref(), target(self.file.clone()))
        }
    }
}

impl LiveArgs {
    /// Returns the trace to replay.
    pub fn replayed(&self) -> Option<&PathBuf> {
        self.replay.as_ref().or(self.trace.as_ref())
    }

    pub fn options(&self) -> RecordOptions {
        RecordOptions {
            stop_when: self.stop_when.clone(),
            ..self.session.options(self.types.types.as_ref(), Target::RealTime)
        }
    }
}

/// Why a value is rejected.
#[derive(Debug, Error)]
enum ArgError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(transparent)]
    Option(#[from] OptionError),
    #[error("name a file that ends with .{extension}")]
    Name { extension: &'static str },
    #[error("'{text}' is not a valid speed; use a number above 0, such as 1, 0.5 or 20")]
    Speed { text: String },
}

fn buffer_size(text: &str) -> Result<BufferSize, ArgError> {
    Ok(BufferSize::new(bytes(text)?)?)
}

fn buffer_count(text: &str) -> Result<BufferCount, ArgError> {
    Ok(BufferCount::new(in_u32(whole(text), text)?)?)
}

/// Parses a number of minutes other than 0.
fn minutes(text: &str) -> Result<u32, ArgError> {
    Ok(in_u32(number(text), text)?)
}

/// Checks that the session's configuration can hold a number.
fn in_u32(number: Result<u64, ValueError>, text: &str) -> Result<u32, ValueError> {
    u32::try_from(number?).map_err(|_| ValueError::TooLarge { value: text.to_owned() })
}

fn duration(text: &str) -> Result<Duration, ArgError> {
    let ns = u64::try_from(nanoseconds(text)?).ok();
    let duration = ns.map(Duration::from_nanos).filter(|duration| !duration.is_zero());
    Ok(duration.ok_or_else(|| ValueError::NoUnit {
        value: text.to_owned(),
        expected: "a valid time above 0, such as 600 or 90s",
    })?)
}

fn speed(text: &str) -> Result<f64, ArgError> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| ArgError::Speed { text: text.to_owned() })
}

fn trace_name(name: &str) -> Result<PathBuf, ArgError> {
    named(name, "etl")
}

fn profile_name(name: &str) -> Result<PathBuf, ArgError> {
    named(name, "wprp")
}

fn named(name: &str, extension: &'static str) -> Result<PathBuf, ArgError> {
    let path = with_home(name);
    if has_extension(&path, &[extension]) { Ok(path) } else { Err(ArgError::Name { extension }) }
}
