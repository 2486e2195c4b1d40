//! A check that the type records of a PDB describe types at all.
//!
//! The names of inlined functions, and the parameters of all others, are put together from type
//! records that refer to each other. The formatter follows these references without a limit: in a
//! damaged PDB, a pointer to itself would take all memory, and a procedure that returns itself the
//! stack. A type record refers only to earlier ones ("The PDB TPI and IPI Streams" in LLVM's
//! documentation: a stream is topologically sorted), which makes a circle easy to rule out.

use std::error::Error;

// The re-export is hidden from symbolic's documentation; there is no other way to its records.
use symbolic::debuginfo::pdb::{PdbObject, pdb};

use self::pdb::{FallibleIterator, IdData, TypeData, TypeIndex};

/// Fails on the first reference to a later record, or if the records can not be walked.
pub(super) fn check_order(object: &PdbObject<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut file = object.inner().write();
    let types = file.type_information()?;
    let mut records = types.iter();
    while let Some(record) = records.next()? {
        // Records of an unknown kind are not followed by the formatter either.
        let Ok(data) = record.parse() else { continue };
        for target in references(&data) {
            ensure_earlier(target.0, record.index().0)?;
        }
    }
    let ids = file.id_information()?;
    let mut records = ids.iter();
    while let Some(record) = records.next()? {
        if let Ok(IdData::Function(function)) = record.parse()
            && let Some(scope) = function.scope
        {
            ensure_earlier(scope.0, record.index().0)?;
        }
    }
    Ok(())
}

/// The references that the formatter follows.
fn references(data: &TypeData<'_>) -> Vec<TypeIndex> {
    match data {
        TypeData::Pointer(pointer) => vec![pointer.underlying_type],
        TypeData::Modifier(modifier) => vec![modifier.underlying_type],
        TypeData::Enumeration(enumeration) => vec![enumeration.underlying_type],
        TypeData::Array(array) => vec![array.element_type],
        TypeData::Bitfield(bitfield) => vec![bitfield.underlying_type],
        TypeData::ArgumentList(list) => list.arguments.clone(),
        TypeData::Procedure(procedure) => {
            procedure.return_type.into_iter().chain([procedure.argument_list]).collect()
        }
        TypeData::MemberFunction(method) => {
            let class = [method.return_type, method.class_type, method.argument_list];
            method.this_pointer_type.into_iter().chain(class).collect()
        }
        _ => Vec::new(),
    }
}

fn ensure_earlier(target: u32, record: u32) -> Result<(), String> {
    // The highest bit marks a reference into the table of another module.
    if target < record || target & 0x8000_0000 != 0 {
        return Ok(());
    }
    Err(format!("type record {record:#x} refers to the later record {target:#x}"))
}
