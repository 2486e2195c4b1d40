//! What is done with any text as a symbol path, and as a list of servers.

use std::path::Path;

use handlescope_symbols::{ServerChoice, SymbolPath, SymbolSources};

/// Reads a text as both, and checks what holds for every path.
pub fn read(text: &str) {
    let path = SymbolPath::parse(text);
    assert_eq!(path.text(), text);
    let settled = path.based_on(Path::new("/base"));
    assert_eq!(settled.based_on(Path::new("/other")), settled);
    assert_eq!(settled.is_empty(), path.is_empty());
    if text.chars().all(|c| c == ';' || c.is_whitespace()) {
        assert!(path.is_empty());
    }
    if let Ok(servers) = ServerChoice::parse_list(text) {
        assert!(!servers.is_empty());
        let is_local = |choice: &ServerChoice| !matches!(choice, ServerChoice::Environment);
        let servers: Vec<ServerChoice> = servers.into_iter().filter(is_local).collect();
        let sources = SymbolSources { servers, ..SymbolSources::default() };
        assert!(sources.symbol_path().is_ok());
    }
    let sources = SymbolSources { folders: vec![text.into()], ..SymbolSources::default() };
    if let Ok(path) = sources.symbol_path() {
        assert!(!path.is_empty());
    }
}
