//! The schema: the columns of every table.

use super::{
    Acquisitions, Allocators, EventCounts, EventFields, EventValues, Events, Frames, Losses,
    Methods, ModuleLoads, Modules, Names, ObjectTypes, Objects, Processes, ProviderEvents,
    ReferenceChanges, ResourceMisses, StackEvents, Stacks, Symbols, Threads, TraceInfos, Volumes,
    Warnings, Zombies,
};
use crate::column::ColumnSpec;
use crate::table::Table;

/// Version of the table layout, stored in the trace table. Archives of another layout are refused.
pub const SCHEMA_VERSION: u32 = 9;

impl Table {
    /// Returns the columns, in archive order.
    pub fn columns(self) -> &'static [ColumnSpec] {
        match self {
            Self::Trace => TraceInfos::COLUMNS,
            Self::Processes => Processes::COLUMNS,
            Self::Threads => Threads::COLUMNS,
            Self::Zombies => Zombies::COLUMNS,
            Self::Modules => Modules::COLUMNS,
            Self::ModuleLoads => ModuleLoads::COLUMNS,
            Self::Volumes => Volumes::COLUMNS,
            Self::ObjectTypes => ObjectTypes::COLUMNS,
            Self::Names => Names::COLUMNS,
            Self::Objects => Objects::COLUMNS,
            Self::Acquisitions => Acquisitions::COLUMNS,
            Self::ReferenceChanges => ReferenceChanges::COLUMNS,
            Self::Events => Events::COLUMNS,
            Self::Stacks => Stacks::COLUMNS,
            Self::StackEvents => StackEvents::COLUMNS,
            Self::Frames => Frames::COLUMNS,
            Self::Methods => Methods::COLUMNS,
            Self::Symbols => Symbols::COLUMNS,
            Self::EventCounts => EventCounts::COLUMNS,
            Self::ProviderEvents => ProviderEvents::COLUMNS,
            Self::EventFields => EventFields::COLUMNS,
            Self::EventValues => EventValues::COLUMNS,
            Self::Allocators => Allocators::COLUMNS,
            Self::ResourceMisses => ResourceMisses::COLUMNS,
            Self::Losses => Losses::COLUMNS,
            Self::Warnings => Warnings::COLUMNS,
        }
    }

    pub fn column(self, name: &str) -> Option<&'static ColumnSpec> {
        self.columns().iter().find(|spec| spec.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Reference;
    use crate::tables::Process;

    #[test]
    fn every_table_and_column_has_a_unique_documented_name() {
        let mut tables = std::collections::HashSet::new();
        for table in Table::ALL {
            assert!(tables.insert(table.name()));
            let mut columns = std::collections::HashSet::new();
            for column in table.columns() {
                assert!(columns.insert(column.name), "{}.{}", table.name(), column.name);
                assert!(!column.doc.trim().is_empty(), "{}.{}", table.name(), column.name);
            }
        }
    }

    #[test]
    fn keys_name_a_column_without_nulls_of_their_table() {
        for column in Table::ALL.into_iter().flat_map(Table::columns) {
            if let Some(Reference::Key(table, name)) = column.refers_to {
                let named = table.column(name).unwrap();
                assert!(!named.nullable && named.refers_to.is_none(), "{}", column.name);
            }
        }
    }

    #[test]
    fn a_unit_names_the_table_that_row_numbers_point_into() {
        let unit = |spec: ColumnSpec| spec.unit_text().into_owned();
        assert_eq!(unit(Events::stack.spec()), "row of stacks");
        assert_eq!(unit(Stacks::frames.spec()), "rows of frames");
        assert_eq!(unit(Objects::type_id.spec()), "object_types.type_id");
        assert_eq!(unit(ObjectTypes::type_id.spec()), "");
        assert_eq!(unit(Objects::acquisition_count.spec()), "");
        assert_eq!(unit(Events::time_ns.spec()), "ns since session start");
    }

    #[test]
    fn a_table_becomes_a_frame_with_the_declared_columns() {
        let mut processes = Processes::default();
        processes.push(Process { pid: 4, name: "System".into(), ..Process::default() });
        let frame = processes.into_frame().unwrap();
        assert_eq!(frame.height(), 1);
        let names: Vec<_> = frame.get_column_names().into_iter().map(|n| n.to_string()).collect();
        let declared: Vec<_> = Processes::COLUMNS.iter().map(|c| c.name.to_string()).collect();
        assert_eq!(names, declared);
        for spec in Processes::COLUMNS {
            assert_eq!(frame.column(spec.name).unwrap().dtype(), &spec.dtype.dtype());
        }
    }
}
