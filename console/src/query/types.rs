//! The object types of a trace.

use std::path::Path;

use handlescope_model::{
    TableRows,
    tables::{ObjectType, ObjectTypes},
};

use super::{error::QueryError, source::Source};

/// The types of one trace.
pub struct TypesAnswer<'a> {
    pub path: &'a Path,
    pub types: Vec<ObjectType>,
}

/// # Errors
/// When an archive is damaged.
pub fn types<'a>(sources: &[Source<'a>]) -> Result<Vec<TypesAnswer<'a>>, QueryError> {
    let types = |source: &Source<'a>| {
        let types = ObjectTypes::read(source.trace)?.rows().collect();
        Ok(TypesAnswer { path: source.path, types })
    };
    sources.iter().map(types).collect()
}
