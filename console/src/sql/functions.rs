//! Functions besides those of polars. With them a view follows row numbers without joins: polars would carry out a join
//! also where nothing of it is asked, and order the rows anew.

use std::sync::Arc;

use handlescope_model::Table;
use polars::{
    prelude::{
        BaseColumnUdf, ChunkAgg, Column, DataType, Field, IdxCa, NewChunkedArray, PolarsResult,
        Schema, UserDefinedFunction, polars_bail, polars_ensure,
    },
    sql::FunctionRegistry,
};
use polars_plan::prelude::FunctionOptions;

use super::columns::{TableColumn, Values};
use super::hex::{HEX, NUMBER, hex_of, number_of};
use super::tables::Tables;

/// The function that says when the event of a row happened, where its trace has a clock.
const EVENT_TIME: &str = "event_time";

/// Our functions, and no others.
pub(super) struct Functions {
    pub(super) tables: Arc<Tables>,
}

/// A function of one value.
#[derive(Debug, Clone, Copy)]
enum Function {
    Hex,
    /// The number of a hex text.
    Number,
    /// The value that a column has in the row of this number.
    InRow(TableColumn),
}

impl FunctionRegistry for Functions {
    fn register(&mut self, name: &str, _: UserDefinedFunction) -> PolarsResult<()> {
        polars_bail!(SQLInterface: "functions like {name} cannot be added");
    }

    fn get_udf(&self, name: &str) -> PolarsResult<Option<UserDefinedFunction>> {
        let Some(function) = Function::named(name) else { return Ok(None) };
        let (tables, name) = (Arc::clone(&self.tables), name.to_owned());
        let called = name.clone();
        let run = move |arguments: &mut [Column]| match arguments {
            [numbers] => function.run(numbers, &tables),
            _ => polars_bail!(SQLInterface: "{called} takes one value"),
        };
        let called = name.clone();
        let field = move |_: &Schema, arguments: &[Field]| function.field(&called, arguments);
        let function = UserDefinedFunction::new(name.into(), BaseColumnUdf::new(run, field));
        Ok(Some(UserDefinedFunction { options: FunctionOptions::elementwise(), ..function }))
    }

    fn contains(&self, name: &str) -> bool {
        Function::named(name).is_some()
    }
}

impl Function {
    /// `hex`, `number`, `event_time`, or table and column like `processes_name`.
    fn named(name: &str) -> Option<Function> {
        if name.eq_ignore_ascii_case(HEX) {
            return Some(Function::Hex);
        }
        if name.eq_ignore_ascii_case(NUMBER) {
            return Some(Function::Number);
        }
        if name.eq_ignore_ascii_case(EVENT_TIME) {
            return Some(Function::InRow(TableColumn::TIME));
        }
        Table::ALL.into_iter().find_map(|table| {
            let column = name.strip_prefix(table.name())?.strip_prefix('_')?;
            TableColumn::named(table, column).map(Function::InRow)
        })
    }

    fn run(self, numbers: &Column, tables: &Tables) -> PolarsResult<Column> {
        match self {
            Function::Hex => hex_of(&number_of(HEX, numbers)?),
            Function::Number => number_of(NUMBER, numbers),
            Function::InRow(column) => {
                // No row has a number that is negative or too large.
                let rows = numbers.cast(&DataType::UInt32)?;
                let rows = within(rows.u32()?, tables.height(column.table)?);
                let name = numbers.name().clone();
                if !matches!(column.values, Values::Hex) {
                    return Ok(tables.column(column)?.take(&rows)?.with_name(name));
                }
                // Only the values of these rows become text.
                let stored = TableColumn { values: Values::Archive, ..column };
                Ok(hex_of(&tables.column(stored)?.take(&rows)?)?.with_name(name))
            }
        }
    }

    fn field(self, called: &str, arguments: &[Field]) -> PolarsResult<Field> {
        let [number] = arguments else {
            polars_bail!(SQLInterface: "{called} takes one value");
        };
        let (name, dtype) = (number.name(), number.dtype());
        let is_hex = matches!(self, Function::Hex | Function::Number) && dtype.is_string();
        polars_ensure!(
            is_hex || dtype.is_integer() || dtype.is_null() || dtype.is_unknown(),
            SQLInterface: "{called} takes a number, but {name} is {dtype}"
        );
        let dtype = match self {
            Function::Hex => DataType::String,
            Function::Number => DataType::UInt64,
            Function::InRow(column) => column.spec.dtype.dtype(),
        };
        Ok(Field::new(name.clone(), dtype))
    }
}

/// Row numbers, without those that a damaged file makes up.
fn within(rows: &IdxCa, height: usize) -> IdxCa {
    let is_within = |row: &u32| (*row as usize) < height;
    if rows.max().as_ref().is_none_or(is_within) {
        return rows.clone();
    }
    let known = rows.iter().map(|row| row.filter(is_within));
    IdxCa::from_iter_options(rows.name().clone(), known)
}
