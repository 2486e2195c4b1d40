//! Attributes of tests that need something of the machine. Where it is missing when the tests are
//! built, they are ignored, and `cargo test` counts them so.
//!
//! They stand before `#[test]`.

use proc_macro::{TokenStream, TokenTree};

/// A test of the published traces, whose folder the variable `HANDLESCOPE_DATA` names.
#[proc_macro_attribute]
pub fn needs_data(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_data), "needs HANDLESCOPE_DATA", test)
}

/// A test that compiles and links a program for Windows.
#[proc_macro_attribute]
pub fn needs_linker(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_linker), "needs clang++ and lld-link", test)
}

/// A test that looks at a page with headless Chromium.
#[proc_macro_attribute]
pub fn needs_chromium(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_chromium), "needs chromium", test)
}

/// A test that runs Bash.
#[proc_macro_attribute]
pub fn needs_bash(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_bash), "needs bash", test)
}

/// A test with the Python interpreter that the variable `HANDLESCOPE_PYTHON` names, which has the
/// package `duckdb`.
#[proc_macro_attribute]
pub fn needs_duckdb(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_duckdb), "needs HANDLESCOPE_PYTHON", test)
}

/// A test with the Python interpreter that the variable `HANDLESCOPE_PYTHON` names, which has the
/// packages `pandas`, `pyarrow` and `duckdb`.
#[proc_macro_attribute]
pub fn needs_pandas(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_pandas), "needs HANDLESCOPE_PYTHON with pandas and pyarrow", test)
}

/// A test with the Python interpreter that the variable `HANDLESCOPE_PYTHON` names, which has the
/// package `mcp`.
#[proc_macro_attribute]
pub fn needs_mcp(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_mcp), "needs HANDLESCOPE_PYTHON with mcp", test)
}

/// A test with the Python interpreter that the variable `HANDLESCOPE_PYTHON` names, which has the
/// package `protobuf`.
#[proc_macro_attribute]
pub fn needs_protobuf(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_protobuf), "needs HANDLESCOPE_PYTHON with protobuf", test)
}

/// A test with the Python interpreter that the variable `HANDLESCOPE_PYTHON` names, which has the
/// packages `pyspark` and `duckdb`, and with Java.
#[proc_macro_attribute]
pub fn needs_spark(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_spark), "needs HANDLESCOPE_PYTHON with pyspark, and java", test)
}

fn ignored_unless(is_there: bool, reason: &str, test: TokenStream) -> TokenStream {
    let is_test = |token: TokenTree| match token {
        TokenTree::Group(group) => group.stream().to_string() == "test",
        _ => false,
    };
    let added = if !test.clone().into_iter().any(is_test) {
        // After `#[test]` it would come too late.
        "compile_error!(\"put this attribute before #[test]\");".to_owned()
    } else if is_there {
        String::new()
    } else {
        format!("#[ignore = {reason:?}]")
    };
    let added: TokenStream = added.parse().unwrap_or_default();
    added.into_iter().chain(test).collect()
}
