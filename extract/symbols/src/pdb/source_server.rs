//! Locations of source files in a PDB: Source Link and source servers.
//!
//! Source Link is JSON in the stream `sourcelink` that maps paths to addresses (dotnet/designs, "Source Link"). A
//! source server is text in the stream `srcsrv`, whose variables form an address or a command (learn, "Source server":
//! language specification 1 and 2).

use std::collections::BTreeMap;
use std::io::Cursor;

use serde::Deserialize;
use srcsrv::{SourceRetrievalMethod, SrcSrvStream};
// Hidden from symbolic's documentation; see `bounds`.
use symbolic::debuginfo::pdb::pdb;
use thiserror::Error;

/// Maximum size of a stream. Chrome's, with 80,000 files, has about 10 MiB.
const MAX_BYTES: usize = 64 << 20;
/// Maximum bytes of all variables of a source server and of its entry for one file, and maximum uses of a value in
/// others. The result is no longer than the product of these.
const MAX_VARIABLES: usize = 16 << 10;
const MAX_LINE: usize = 4 << 10;
const MAX_COPIES: usize = 1024;
/// Maximum nesting of calls, because the parser follows them on the stack of its thread.
const MAX_CALLS: usize = 32;
/// Maximum length of a command in output.
const MAX_SHOWN: usize = 1024;

/// Locations of source files in a PDB.
#[derive(Default)]
pub struct SourceServer {
    /// Lower-case path prefixes and their replacements, longest first.
    links: Vec<(String, String)>,
    /// The stream of a source server, already checked.
    stream: Vec<u8>,
}

#[derive(Deserialize)]
struct SourceLink {
    documents: BTreeMap<String, String>,
}

/// A source server ready to be evaluated.
pub struct SourceLocations<'a> {
    links: &'a [(String, String)],
    stream: Option<SrcSrvStream<'a>>,
}

impl SourceServer {
    /// Reads the locations from the bytes of a PDB; empty if it has no such streams or they are refused.
    pub fn new(bytes: &[u8]) -> Self {
        let Ok(mut pdb) = pdb::PDB::open(Cursor::new(bytes)) else { return Self::default() };
        let server = stream(&mut pdb, b"srcsrv").filter(|text| check(text).is_ok());
        let links = stream(&mut pdb, b"sourcelink").and_then(|links| links_of(&links));
        Self { links: links.unwrap_or_default(), stream: server.unwrap_or_default() }
    }

    /// Parses what lookups of many files share.
    pub fn locations(&self) -> SourceLocations<'_> {
        let stream = Some(&self.stream).filter(|stream| !stream.is_empty());
        let stream = stream.and_then(|stream| SrcSrvStream::parse(stream).ok());
        SourceLocations { links: &self.links, stream }
    }
}

impl SourceLocations<'_> {
    /// Returns the address of a source file, or the command that fetches it.
    pub fn of(&self, file: &str) -> Option<String> {
        self.linked(file).or_else(|| self.served(file))
    }

    fn linked(&self, file: &str) -> Option<String> {
        let lower = file.to_ascii_lowercase();
        let (start, address) =
            self.links.iter().find(|(start, _)| match start.strip_suffix('*') {
                Some(start) => lower.starts_with(start),
                None => lower == *start,
            })?;
        let rest = start.strip_suffix('*').and_then(|start| file.get(start.len()..));
        Some(address.replacen('*', &rest.unwrap_or_default().replace('\\', "/"), 1))
    }

    fn served(&self, file: &str) -> Option<String> {
        let source = self.stream.as_ref()?.source_for_path(file, "%targ%").ok()??;
        let text = match source {
            SourceRetrievalMethod::Download { url } => url,
            SourceRetrievalMethod::ExecuteCommand { command, .. } => command,
            _ => return None,
        };
        Some(text.chars().take(MAX_SHOWN).collect())
    }
}

/// Reasons to ignore a source server.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SourceServerError {
    #[error("its source server stream is too large")]
    TooLarge,
    #[error("its source server stream has a line that is too long")]
    EndlessLine,
    #[error("its source server stream nests calls too deeply")]
    EndlessCalls,
    #[error("its source server stream expands without limit")]
    EndlessTexts,
}

/// Fails if the PDB has a source server whose text must not be evaluated.
pub fn check_source_server(bytes: &[u8]) -> Result<(), SourceServerError> {
    let Ok(mut pdb) = pdb::PDB::open(Cursor::new(bytes)) else { return Ok(()) };
    stream(&mut pdb, b"srcsrv").map_or(Ok(()), |stream| check(&stream))
}

/// Fails if values could become much longer than the text, or calls are nested too deeply.
fn check(stream: &[u8]) -> Result<(), SourceServerError> {
    if stream.len() > MAX_BYTES {
        return Err(SourceServerError::TooLarge);
    }
    let text = String::from_utf8_lossy(stream);
    if text.lines().any(|line| line.len() > MAX_LINE) {
        return Err(SourceServerError::EndlessLine);
    }
    let (mut bytes, mut copies) = (0_usize, 1_usize);
    for line in text.lines().take_while(|line| !line.starts_with("SRCSRV: source files")) {
        bytes += line.len();
        let references = line.bytes().filter(|byte| *byte == b'%').count() / 2;
        copies = copies.saturating_mul(references.max(1));
        if line.bytes().filter(|byte| *byte == b'(').count() > MAX_CALLS {
            return Err(SourceServerError::EndlessCalls);
        }
    }
    if bytes > MAX_VARIABLES || copies > MAX_COPIES {
        return Err(SourceServerError::EndlessTexts);
    }
    Ok(())
}

/// Parses the content of the stream `sourcelink`, if it is valid.
fn links_of(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let SourceLink { documents } = serde_json::from_slice(bytes).ok()?;
    let mut links: Vec<(String, String)> =
        documents.into_iter().map(|(start, to)| (start.to_ascii_lowercase(), to)).collect();
    links.sort_by_key(|(start, _)| std::cmp::Reverse(start.len()));
    Some(links)
}

fn stream<'b>(pdb: &mut pdb::PDB<'b, Cursor<&'b [u8]>>, name: &[u8]) -> Option<Vec<u8>> {
    let stream = pdb.named_stream(name).ok()?;
    let bytes = stream.as_slice();
    let is_read = !bytes.is_empty() && bytes.len() <= MAX_BYTES;
    is_read.then(|| bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_with(links: &[(&str, &str)], stream: &str) -> SourceServer {
        let documents: BTreeMap<_, _> = links.iter().copied().collect();
        let json = serde_json::json!({ "documents": documents }).to_string();
        let links = links_of(json.as_bytes()).expect("it is well-formed");
        SourceServer { links, stream: stream.as_bytes().to_vec() }
    }

    #[test]
    fn source_link_replaces_the_longest_start_of_a_path() {
        let server = server_with(
            &[
                (r"C:\src\*", "https://example.com/main/*"),
                (r"C:\src\lib\*", "https://example.com/lib/*?raw=1"),
                (r"D:\one.cpp", "https://example.com/one.cpp"),
            ],
            "",
        );
        let locations = server.locations();
        assert_eq!(locations.of(r"c:\SRC\a\b.cpp").unwrap(), "https://example.com/main/a/b.cpp");
        assert_eq!(locations.of(r"C:\src\lib\x.h").unwrap(), "https://example.com/lib/x.h?raw=1");
        assert_eq!(locations.of(r"D:\one.cpp").unwrap(), "https://example.com/one.cpp");
        assert_eq!(locations.of(r"D:\two.cpp"), None);
    }

    fn with_variables(variables: &str) -> String {
        format!(
            "SRCSRV: ini ------\r\nVERSION=1\r\nVERCTRL=Git\r\nSRCSRV: variables ------\r\n{variables}\r\n\
             SRCSRV: source files ------\r\nc:\\b\\a.cpp*src/a.cpp*abc123\r\nSRCSRV: end ------\r\n"
        )
    }

    #[test]
    fn a_source_server_makes_an_address_or_a_command() {
        let by_address =
            with_variables("HOST=https://git.example\r\nSRCSRVTRG=%HOST%/%var3%/%var2%");
        let server = server_with(&[], &by_address);
        assert_eq!(check(by_address.as_bytes()), Ok(()));
        assert_eq!(
            server.locations().of(r"C:\B\a.cpp").unwrap(),
            "https://git.example/abc123/src/a.cpp"
        );
        assert_eq!(server.locations().of(r"C:\B\b.cpp"), None);

        let by_command = with_variables(
            "SRCSRVTRG=%targ%\\%var3%\\%fnfile%(%var1%)\r\nSRCSRVCMD=git show %var3%:%var2%",
        );
        let server = server_with(&[], &by_command);
        assert_eq!(server.locations().of(r"c:\b\a.cpp").unwrap(), "git show abc123:src/a.cpp");
    }

    #[test]
    fn texts_that_grow_without_end_and_calls_without_end_are_refused() {
        let doubling = (1..40).map(|n| format!("A{n}=%A{}%%A{}%\r\n", n - 1, n - 1));
        let doubling =
            with_variables(&format!("A0=x\r\n{}SRCSRVTRG=%A39%", doubling.collect::<String>()));
        assert!(check(doubling.as_bytes()).is_err());
        let deep = with_variables(&format!("SRCSRVTRG={}", "%fnvar%(".repeat(100_000)));
        assert!(check(deep.as_bytes()).is_err());
        assert!(check(&vec![b'x'; MAX_BYTES + 1]).is_err());
    }

    #[test]
    fn a_file_that_is_no_pdb_has_no_sources() {
        assert_eq!(SourceServer::new(b"no PDB").locations().of("a.cpp"), None);
        assert!(check_source_server(b"no PDB").is_ok());
    }
}
