/// How the number of open handles of a group develops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It leaks: handles are lost at one rate, to the end.
    Steady,
    /// Many handles were lost within a very short time.
    Burst,
    /// It was filled and then kept: a cache, a warm-up.
    Once,
    /// What is opened is closed; what is open at the end is young.
    Balanced,
    /// Too few handles, or in too short a time, to judge.
    Short,
}

impl Verdict {
    pub const ALL: [Self; 5] = [Self::Steady, Self::Burst, Self::Once, Self::Balanced, Self::Short];

    /// The word it goes by, which stays the same.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Burst => "burst",
            Self::Once => "once",
            Self::Balanced => "balanced",
            Self::Short => "short",
        }
    }

    /// Its meaning in a few words; `closed` is what becomes of those that are not lost.
    pub fn meaning(self, closed: &str) -> String {
        match self {
            Self::Steady => "it goes on".to_owned(),
            Self::Burst => "all at once".to_owned(),
            Self::Once => "filled at the start".to_owned(),
            Self::Balanced => format!("{closed} as a rule"),
            Self::Short => "too little to tell how it grows".to_owned(),
        }
    }
}
