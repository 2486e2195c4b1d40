//! Texts that mean something in an extract.

/// What stands for a module that is not known.
pub(super) const UNKNOWN_MODULE: &str = "<UnknownModule>";

/// What stands for a frame of which nothing is known.
pub(super) const UNKNOWN_METHOD: &str = "<UnknownMethod>";

/// What stands for the version of a module that has none.
pub(super) const NO_VERSION: &str = "<NoVersion>";

/// The process that kernel modules are listed under.
pub(super) const SYSTEM: &str = "System";

/// How the options of an extract begin that this program wrote, which knows what ETWAnalyzer does
/// not.
pub(super) const OWN_OPTIONS: &str = "handlescope";

/// Names of the bits of a log file mode.
const LOG_FILE_MODES: [(&str, u32); 20] = [
    ("FILE_MODE_SEQUENTIAL", 0x1),
    ("FILE_MODE_CIRCULAR", 0x2),
    ("FILE_MODE_APPEND", 0x4),
    ("FILE_MODE_NEWFILE", 0x8),
    ("FILE_MODE_PREALLOCATE", 0x20),
    ("NONSTOPPABLE_MODE", 0x40),
    ("SECURE_MODE", 0x80),
    ("REAL_TIME_MODE", 0x100),
    ("DELAY_OPEN_FILE_MODE", 0x200),
    ("BUFFERING_MODE", 0x400),
    ("PRIVATE_LOGGER_MODE", 0x800),
    ("ADD_HEADER_MODE", 0x1000),
    ("USE_GLOBAL_SEQUENCE", 0x4000),
    ("USE_LOCAL_SEQUENCE", 0x8000),
    ("RELOG_MODE", 0x1_0000),
    ("PRIVATE_IN_PROC", 0x2_0000),
    ("USE_PAGED_MEMORY", 0x100_0000),
    ("SYSTEM_LOGGER_MODE", 0x200_0000),
    ("INDEPENDENT_SESSION_MODE", 0x800_0000),
    ("NO_PER_PROCESSOR_BUFFERING", 0x1000_0000),
];

/// The bits of a log file mode that is written as names.
pub(super) fn log_file_mode(text: &str) -> u32 {
    let flag = |name: &str| match name.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or_default(),
        None => {
            LOG_FILE_MODES.iter().find(|(known, _)| *known == name).map_or(0, |(_, bits)| *bits)
        }
    };
    text.split(',').map(|name| flag(name.trim())).fold(0, |mode, bits| mode | bits)
}

/// A log file mode as names; bits without one together as a number.
pub(super) fn log_file_mode_names(mode: u32) -> String {
    let set = LOG_FILE_MODES.iter().filter(|(_, bits)| mode & bits != 0);
    let mut names: Vec<String> = set.clone().map(|(name, _)| (*name).to_owned()).collect();
    let rest = set.fold(mode, |rest, (_, bits)| rest & !bits);
    if rest != 0 {
        names.push(format!("0x{rest:X}"));
    }
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_mode_are_its_bits() {
        assert_eq!(log_file_mode("FILE_MODE_SEQUENTIAL, RELOG_MODE,0x80000000"), 0x8001_0001);
        assert_eq!(log_file_mode(""), 0);
    }

    #[test]
    fn a_mode_survives_as_names() {
        assert_eq!(log_file_mode_names(0x1_0001), "FILE_MODE_SEQUENTIAL,RELOG_MODE");
        for mode in [0, 1, 0x8001_0001, u32::MAX] {
            assert_eq!(log_file_mode(&log_file_mode_names(mode)), mode);
        }
    }
}
