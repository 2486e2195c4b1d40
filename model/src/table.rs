//! The list of the tables of a trace.

/// Declares the enumeration, names and meanings of the tables from one list.
macro_rules! tables {
    (
        $( #[doc = $doc:literal] $table:ident = $name:literal; )+
        derived:
        $( #[doc = $derived_doc:literal] $derived:ident = $derived_name:literal; )+
    ) => {
        /// The tables of a trace.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Table {
            $( #[doc = $doc] $table, )+
            $( #[doc = $derived_doc] $derived, )+
        }

        impl Table {
            /// Every stored table, in archive order.
            pub const ALL: [Self; [$( $name, )+].len()] = [ $( Self::$table, )+ ];

            /// The tables that are derived from others when they are read.
            pub const DERIVED: [Self; [$( $derived_name, )+].len()] = [ $( Self::$derived, )+ ];

            /// Returns the name, such as `module_loads`.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$table => $name, )+ $( Self::$derived => $derived_name, )+ }
            }

            /// Returns the description of the rows.
            pub fn doc(self) -> &'static str {
                match self {
                    $( Self::$table => $doc.trim_ascii_start(), )+
                    $( Self::$derived => $derived_doc.trim_ascii_start(), )+
                }
            }

            /// Whether the table is derived from others when it is read.
            pub const fn is_derived(self) -> bool {
                matches!(self, $( Self::$derived )|+)
            }
        }
    };
}

tables! {
    /// One row about the trace itself.
    Trace = "trace";
    /// Processes, one row per lifetime.
    Processes = "processes";
    /// Threads, one row per lifetime.
    Threads = "threads";
    /// Processes that have ended but are still in memory.
    Zombies = "zombies";
    /// Modules, one row per file identity.
    Modules = "modules";
    /// Address and time ranges of mapped modules.
    ModuleLoads = "module_loads";
    /// Prefixes of kernel paths, with the form that programs use.
    Volumes = "volumes";
    /// Names of the object types.
    ObjectTypes = "object_types";
    /// Object names, each once.
    Names = "names";
    /// Kernel objects and mapped views, one row per lifetime.
    Objects = "objects";
    /// Handles, views and allocations, one row each.
    Acquisitions = "acquisitions";
    /// Changes of the reference counts of objects.
    ReferenceChanges = "reference_changes";
    /// Call stacks, each once.
    Stacks = "stacks";
    /// Every recorded stack, if all are kept.
    StackEvents = "stack_events";
    /// Frames, each once.
    Frames = "frames";
    /// Methods of managed code.
    Methods = "methods";
    /// Function names, if they were resolved at extraction.
    Symbols = "symbols";
    /// Number of events of each kind in the source.
    EventCounts = "event_counts";
    /// Single events of the chosen providers.
    ProviderEvents = "provider_events";
    /// Fields of these events.
    EventFields = "event_fields";
    /// Values of the fields of these events.
    EventValues = "event_values";
    /// Heaps, and other sources of allocations.
    Allocators = "allocators";
    /// Frees without allocation, and ignored events.
    ResourceMisses = "resource_misses";
    /// Time ranges in which events may be missing.
    Losses = "losses";
    /// Data that was lost, damaged or left out.
    Warnings = "warnings";
    derived:
    /// Events of objects: openings and ends of handles and views, object events and reference changes, in time order within each object.
    Events = "events";
}

impl Table {
    /// Returns the name of the archive member that holds the table, such as `module_loads.parquet`.
    pub fn member(self) -> String {
        format!("{}.parquet", self.name())
    }

    /// Returns the tables available to queries and exports: all stored ones, and the events.
    pub fn queried() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::Events])
    }

    /// Returns the stored table with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name().eq_ignore_ascii_case(name))
    }
}
