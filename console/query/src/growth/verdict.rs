/// Development of the number of open handles of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Handles leak at one rate, to the end.
    Steady,
    /// Many handles leaked within a very short time.
    Burst,
    /// The group was filled and then kept: a cache, a warm-up.
    Once,
    /// Opened handles are closed; those open at the end are young.
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

    /// The word in texts for people.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Short => "too short to say",
            Self::Steady | Self::Burst | Self::Once | Self::Balanced => self.word(),
        }
    }

    /// The title of a line about it; `closed` is what becomes of handles that are not leaked.
    pub fn title(self, closed: &str) -> String {
        match self {
            Self::Steady => "Steady leak".to_owned(),
            Self::Burst => "Burst".to_owned(),
            Self::Once => "Filled once".to_owned(),
            Self::Balanced => format!("Usually {closed}"),
            Self::Short => "Too little data to judge growth".to_owned(),
        }
    }
}
