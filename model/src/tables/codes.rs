//! The declaration of what a column stores as a number.

/// Declares an enumeration that a column stores as a number.
macro_rules! codes {
    ($(#[$doc:meta])+ $name:ident { $( #[doc = $text:literal] $variant:ident = $word:literal, )+ }) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name { $( #[doc = $text] $variant, )+ }

        impl $name {
            /// Every one; the position is the stored number.
            pub const ALL: [Self; [$( $word, )+].len()] = [ $( Self::$variant, )+ ];

            /// The stored number.
            pub fn code(self) -> u32 {
                self as u32
            }

            /// What a stored number means; `None` for a number of a newer layout.
            pub fn from_code(code: u32) -> Option<Self> {
                Self::ALL.get(code as usize).copied()
            }

            /// The name in JSON and in options.
            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }
        }
    };
}

pub(super) use codes;
