//! A trace in a `.zip` archive.

use std::env;
use std::fs::File;
use std::path::Path;

use handlescope_model::{ContainerError, ContainerLimits};

use super::choose::choose;
use crate::error::ExtractError;
use crate::members::{Watch, copy, temporary};
use crate::zip_archive::Zip;

/// Unpacks the trace into an unnamed temporary file; returns its name, too.
pub(super) fn unpack(
    path: &Path,
    file: File,
    limits: &ContainerLimits,
    watch: Watch<'_>,
) -> Result<(File, String), ExtractError> {
    let unreadable =
        |reason: String| ContainerError::Unreadable { path: path.to_path_buf(), reason };
    let packed = file.metadata().map_err(|error| unreadable(error.to_string()))?.len();
    let Zip { mut archive, names } = Zip::open(path, file)?;
    let name = choose(path, &names)?;
    let damaged = |reason: String| ContainerError::Member {
        path: path.to_path_buf(),
        member: name.clone(),
        reason,
    };
    let mut member = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
    let size = member.size();
    limits.check_size(path, &name, size)?;
    limits.check_content(path, packed, size)?;
    let mut target = temporary(path, &env::temp_dir())?;
    copy(&mut member, &mut target, size, watch).map_err(|error| damaged(error.to_string()))?;
    drop(member);
    Ok((target, name))
}
