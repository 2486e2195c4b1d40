//! A check that a PDB can be read with the stack and the memory there is.
//!
//! The names of inlined functions, and the parameters of all others, are put together from type
//! records that refer to each other. The formatter follows these references without a limit: in a
//! damaged PDB, a pointer to itself would take all memory, and a procedure that returns itself the
//! stack. A type record refers only to earlier ones ("The PDB TPI and IPI Streams" in LLVM's
//! documentation: a stream is topologically sorted), which makes a circle easy to rule out. Without
//! circles a few records can still spell a name of any length, each naming the one before twice.
//!
//! Scopes of functions are read by recursion too, so they may not be nested without end.

use thiserror::Error;

// The re-export is hidden from symbolic's documentation; there is no other way to its records.
use symbolic::debuginfo::pdb::{PdbObject, pdb};

use self::pdb::{FallibleIterator, IdData, TypeData, TypeIndex};

/// Why a PDB is not read further.
#[derive(Debug, Error)]
pub(in crate::symbols) enum CheckError {
    #[error("type record {record:#x} refers to the later record {target:#x}")]
    LaterRecord { record: u32, target: u32 },
    #[error("type record {record:#x} has a text without end")]
    EndlessText { record: u32 },
    #[error("scopes are nested without end")]
    EndlessScopes,
    #[error(transparent)]
    Unreadable(#[from] pdb::Error),
}

/// Longest text of a type; several times what compilers allow for a name.
const LONGEST_TYPE: u32 = 256 << 10;
/// Text that a type adds to those it is made of, such as ` const *`.
const OWN_TEXT: u32 = 16;
/// Types made of types; a thread's stack is enough for this many.
const DEEPEST_TYPE: u32 = 256;
/// Functions and blocks within each other; the same.
const DEEPEST_SCOPE: usize = 512;

/// How a type's text is put together.
#[derive(Clone, Copy, Default)]
struct Text {
    length: u32,
    depth: u32,
}

/// Fails on the first reference to a later record, or if the records can not be walked.
pub(in crate::symbols) fn check_types(object: &PdbObject<'_>) -> Result<(), CheckError> {
    let mut file = object.inner().write();
    let types = file.type_information()?;
    let mut records = types.iter();
    // Of every record, from the first index on.
    let mut texts: Vec<Text> = Vec::new();
    let mut first = None;
    while let Some(record) = records.next()? {
        let index = record.index().0;
        let first = *first.get_or_insert(index);
        // Records of an unknown kind are not followed by the formatter either.
        let Ok(data) = record.parse() else {
            texts.push(Text::default());
            continue;
        };
        let name = data.name().map_or(0, |name| u32::try_from(name.len()).unwrap_or(u32::MAX));
        let mut text = Text { length: name.saturating_add(OWN_TEXT), depth: 0 };
        for target in references(&data) {
            ensure_earlier(target.0, index)?;
            let part = target.0.checked_sub(first).and_then(|at| texts.get(at as usize));
            let part = part.copied().unwrap_or_default();
            text.length = text.length.saturating_add(part.length);
            text.depth = text.depth.max(part.depth + 1);
        }
        if text.length > LONGEST_TYPE || text.depth > DEEPEST_TYPE {
            return Err(CheckError::EndlessText { record: index });
        }
        texts.push(text);
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

/// Fails if scopes are nested so deep that no compiler wrote them.
pub(in crate::symbols) fn check_scopes(object: &PdbObject<'_>) -> Result<(), CheckError> {
    let mut file = object.inner().write();
    let debug_information = file.debug_information()?;
    let mut modules = debug_information.modules()?;
    while let Some(module) = modules.next()? {
        let Some(module) = file.module_info(&module)? else { continue };
        let mut symbols = module.symbols()?;
        let mut depth = 0_usize;
        while let Some(symbol) = symbols.next()? {
            if symbol.starts_scope() {
                depth += 1;
            } else if symbol.ends_scope() {
                depth = depth.saturating_sub(1);
            }
            if depth > DEEPEST_SCOPE {
                return Err(CheckError::EndlessScopes);
            }
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

fn ensure_earlier(target: u32, record: u32) -> Result<(), CheckError> {
    // The highest bit marks a reference into the table of another module.
    if target < record || target & 0x8000_0000 != 0 {
        return Ok(());
    }
    Err(CheckError::LaterRecord { record, target })
}
