//! Functions besides those of polars.

use polars::{
    prelude::{
        BaseColumnUdf, Column, DataType, Field, IntoColumn, NewChunkedArray, PolarsResult, Schema,
        StringChunked, UserDefinedFunction, polars_bail, polars_ensure,
    },
    sql::FunctionRegistry,
};

/// The function that writes addresses as they are written everywhere else.
pub(crate) const HEX: &str = "hex";

/// Our functions, and no others.
pub(super) struct Functions;

impl FunctionRegistry for Functions {
    fn register(&mut self, name: &str, _: UserDefinedFunction) -> PolarsResult<()> {
        polars_bail!(SQLInterface: "functions like {name} cannot be added");
    }

    fn get_udf(&self, name: &str) -> PolarsResult<Option<UserDefinedFunction>> {
        Ok(self.contains(name).then(|| {
            let function = BaseColumnUdf::new(hex, hex_field);
            UserDefinedFunction::new(HEX.into(), function)
        }))
    }

    fn contains(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case(HEX)
    }
}

fn hex(arguments: &mut [Column]) -> PolarsResult<Column> {
    match arguments {
        [number] => hex_of(number),
        _ => polars_bail!(SQLInterface: "{HEX} takes one number"),
    }
}

fn hex_field(_: &Schema, arguments: &[Field]) -> PolarsResult<Field> {
    let [number] = arguments else {
        polars_bail!(SQLInterface: "{HEX} takes one number");
    };
    let (name, dtype) = (number.name(), number.dtype());
    polars_ensure!(
        dtype.is_integer() || dtype.is_null() || dtype.is_unknown(),
        SQLInterface: "{HEX} takes a number, and {name} is {dtype}"
    );
    Ok(Field::new(name.clone(), DataType::String))
}

/// Numbers as text like `0xC0`.
pub(super) fn hex_of(numbers: &Column) -> PolarsResult<Column> {
    let numbers = numbers.cast(&DataType::UInt64)?;
    let texts = numbers.u64()?.iter().map(|number| number.map(|number| format!("0x{number:X}")));
    Ok(StringChunked::from_iter_options(numbers.name().clone(), texts).into_column())
}
