//! Finds out what this machine has for tests that need it. A test that was built where it exists fails where it does
//! not.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for (name, is_there) in [
        ("has_bash", is_installed("bash")),
        ("has_chromium", is_installed("chromium")),
        ("has_data", is_set("HANDLESCOPE_DATA")),
        ("has_duckdb", is_set("HANDLESCOPE_PYTHON")),
        ("has_pandas", ["pandas", "pyarrow", "duckdb"].into_iter().all(has_package)),
        ("has_mcp", has_package("mcp")),
        ("has_protobuf", has_package("google.protobuf")),
        ("has_spark", has_package("pyspark") && has_package("duckdb") && is_installed("java")),
        ("has_linker", ["clang++", "lld-link"].into_iter().all(is_installed)),
    ] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if is_there {
            println!("cargo::rustc-cfg={name}");
        }
    }
}

fn is_set(variable: &str) -> bool {
    println!("cargo::rerun-if-env-changed={variable}");
    env::var_os(variable).is_some()
}

/// Whether the interpreter named by `HANDLESCOPE_PYTHON` has a package.
fn has_package(name: &str) -> bool {
    let python = env::var_os("HANDLESCOPE_PYTHON").unwrap_or_default();
    let import = format!("import {name}");
    is_set("HANDLESCOPE_PYTHON")
        && Command::new(python).args(["-c", &import]).output().is_ok_and(|run| run.status.success())
}

fn is_installed(program: &str) -> bool {
    println!("cargo::rerun-if-env-changed=PATH");
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(format!("{program}{EXE_SUFFIX}")).is_file())
}
