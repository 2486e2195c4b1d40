//! Attributes for tests that need something from the machine. If it is missing when the tests are built, the tests are
//! ignored, and `cargo test` counts them as ignored.
//!
//! Put them before `#[test]`.

use proc_macro::{TokenStream, TokenTree};

/// Marks a test of the published traces; the variable `HANDLESCOPE_DATA` names their folder.
#[proc_macro_attribute]
pub fn needs_data(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_data), "needs HANDLESCOPE_DATA", test)
}

/// Marks a test that compiles and links a Windows program.
#[proc_macro_attribute]
pub fn needs_linker(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_linker), "needs clang++ and lld-link", test)
}

/// Marks a test that opens a page in headless Chromium.
#[proc_macro_attribute]
pub fn needs_chromium(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_chromium), "needs chromium", test)
}

/// Marks a test that runs Bash.
#[proc_macro_attribute]
pub fn needs_bash(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_bash), "needs bash", test)
}

/// Marks a test with the Python interpreter in `HANDLESCOPE_PYTHON` and its package `duckdb`.
#[proc_macro_attribute]
pub fn needs_duckdb(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_duckdb), "needs HANDLESCOPE_PYTHON", test)
}

/// Marks a test with the Python interpreter in `HANDLESCOPE_PYTHON` and its packages `pandas`, `pyarrow` and `duckdb`.
#[proc_macro_attribute]
pub fn needs_pandas(_: TokenStream, test: TokenStream) -> TokenStream {
    ignored_unless(cfg!(has_pandas), "needs HANDLESCOPE_PYTHON with pandas and pyarrow", test)
}

/// Marks a test with the Python interpreter in `HANDLESCOPE_PYTHON` and its package `mcp`.
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

/// Marks a test with Java, the Python interpreter in `HANDLESCOPE_PYTHON`, and its packages `pyspark` and `duckdb`.
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
