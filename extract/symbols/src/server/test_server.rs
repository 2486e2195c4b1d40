//! Symbol servers for tests, good and bad, on the loopback interface.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use tempfile::TempDir;

use crate::fixture::TestPdb;
use crate::*;

/// For servers that answer, however busy the machine is.
pub const LONG_TIMEOUT: Duration = Duration::from_secs(30);
/// For servers that do not answer.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// A server that answers every request with the result of a function.
pub struct Server {
    pub url: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A request: its path, and its headers by lower-case name.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub path: String,
    headers: HashMap<String, String>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value)
    }

    /// Returns the first byte of the requested range.
    pub fn range_start(&self) -> Option<usize> {
        self.header("range").strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What a server does after the part of the body it sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Close,
    Hang,
}

#[derive(Clone)]
pub struct Reply {
    /// Everything before the body.
    head: String,
    body: Vec<u8>,
    then: Then,
    /// Bytes sent at a time, and the pause after each.
    pieces: Option<(usize, Duration)>,
}

impl Reply {
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        if !headers.iter().any(|(name, _)| *name == "Content-Length") {
            all.push(("Content-Length", &length));
        }
        Self::unsized_with(status, &all, body)
    }

    /// Creates a reply without adding a `Content-Length`.
    pub fn unsized_with(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        Self { head: head + "\r\n", body: body.to_vec(), then: Then::Close, pieces: None }
    }

    pub fn ok(body: &[u8]) -> Self {
        Self::new(200, &[], body)
    }

    pub fn missing() -> Self {
        Self::new(404, &[], b"")
    }

    pub fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, &[("Location", to)], b"")
    }

    pub fn garbage(bytes: &[u8]) -> Self {
        let body = bytes.to_vec();
        Self { head: String::new(), body, then: Then::Close, pieces: None }
    }

    pub fn silence() -> Self {
        Self { head: String::new(), body: Vec::new(), then: Then::Hang, pieces: None }
    }

    /// Replies to a range request with the part of a file from `start`.
    pub fn part(file: &[u8], start: usize, headers: &[(&str, &str)]) -> Self {
        let range = format!("bytes {start}-{}/{}", file.len() - 1, file.len());
        let mut all = headers.to_vec();
        all.push(("Content-Range", &range));
        Self::new(206, &all, &file[start..])
    }

    /// Breaks off after this many bytes of the body.
    pub fn cut(mut self, len: usize) -> Self {
        self.body.truncate(len);
        self
    }

    /// Keeps the connection open but sends no more.
    pub fn then_hang(mut self) -> Self {
        self.then = Then::Hang;
        self
    }

    pub fn in_pieces(mut self, bytes: usize, pause: Duration) -> Self {
        self.pieces = Some((bytes, pause));
        self
    }

    fn send(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(self.head.as_bytes())?;
        let (bytes, pause) = self.pieces.unwrap_or((self.body.len().max(1), Duration::ZERO));
        for piece in self.body.chunks(bytes) {
            stream.write_all(piece)?;
            thread::sleep(pause);
        }
        if self.then == Then::Hang {
            thread::sleep(LONG_TIMEOUT * 2);
        }
        Ok(())
    }
}

impl Server {
    pub fn start(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/symbols", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (received.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (answer, log) = (answer.clone(), log.clone());
                thread::spawn(move || {
                    let request = read_request(&stream);
                    log.lock().expect("log").push(request.clone());
                    let _ = answer(&request).send(&mut stream);
                });
            }
        });
        Self { url, received }
    }

    /// Starts a server with these files, given by their path below the server's address.
    pub fn with(files: Vec<(String, Vec<u8>)>) -> Self {
        Self::start(move |request| {
            let file = files.iter().find(|(path, _)| request.path == format!("/symbols/{path}"));
            file.map_or_else(Reply::missing, |(_, bytes)| Reply::ok(bytes))
        })
    }

    /// Starts a server that answers requests for plain PDBs with the result of a function, and all others with 404.
    pub fn with_pdbs(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(
            move |request| {
                if request.path.ends_with(".pdb") { answer(request) } else { Reply::missing() }
            },
        )
    }

    pub fn delivering(name: &str) -> Self {
        Self::with(vec![(pdb().store_path(name), pdb().bytes())])
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().expect("log").clone()
    }

    pub fn requests(&self) -> usize {
        self.received().len()
    }

    /// Returns the requested paths, except the query for the number of tiers.
    pub fn requested_files(&self) -> Vec<String> {
        let paths = self.received().into_iter().map(|request| request.path);
        paths.filter(|path| !path.ends_with("/index2.txt")).collect()
    }
}

fn read_request(stream: &TcpStream) -> ReceivedRequest {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    });
    ReceivedRequest { path, headers: headers.collect() }
}

/// A cache folder, and sessions that use it before the servers.
pub struct Cache(pub TempDir);

impl Cache {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("temporary folder"))
    }

    pub fn session(&self, servers: &[&Server]) -> Symbolizer {
        let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
        self.symbolizer(&urls, LONG_TIMEOUT)
    }

    pub fn symbolizer(&self, servers: &[&str], download_timeout: Duration) -> Symbolizer {
        self.with_options(
            servers,
            SymbolizerOptions { download_timeout, ..SymbolizerOptions::default() },
        )
    }

    pub fn with_options(&self, servers: &[&str], options: SymbolizerOptions) -> Symbolizer {
        let cache = self.0.path().display();
        let entries: Vec<_> = servers.iter().map(|url| format!("srv*{cache}*{url}")).collect();
        Symbolizer::new(SymbolPath::parse(&entries.join(";")), options)
    }

    pub fn stored(&self, name: &str) -> PathBuf {
        self.0.path().join(pdb().store_path(name))
    }

    pub fn holds(&self, name: &str) -> bool {
        fs::read(self.stored(name)).is_ok_and(|bytes| bytes == pdb().bytes())
    }

    /// Returns the files of the store `name` other than the PDB, and partial downloads to it, without its index.
    pub fn left_overs(&self, name: &str) -> Vec<String> {
        let stored = self.stored(name);
        let folder = stored.parent().expect("has a parent");
        let index = format!(".{}", folder.file_name().expect("a name").to_string_lossy());
        let folders = [folder.to_owned(), super::partial::folder(self.0.path())];
        let files =
            folders.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let files = files
            .flatten()
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .map(|file| file.replacen(&index, "", 1));
        let mut files: Vec<String> =
            files.filter(|file| file != name && file.starts_with(name)).collect();
        files.sort();
        files
    }
}

pub fn pdb() -> TestPdb {
    TestPdb::new(&[(0x1010, "NtOpen")])
}

pub fn modules(names: &[String]) -> Vec<ModuleIdentity> {
    names.iter().map(|name| pdb().module(name)).collect()
}

pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number}.pdb")).collect()
}

pub fn is_named(symbolizer: &Symbolizer, pdb_name: &str) -> bool {
    symbolizer.resolve(&pdb().module(pdb_name), &[0x1010]).iter().any(|chain| !chain.is_empty())
}

/// Returns the report on the module requested last.
pub fn last_report(symbolizer: &Symbolizer) -> ModuleReport {
    symbolizer.report().pop().expect("a module was asked for")
}

/// Returns the only failure of the module requested last.
pub fn last_failure(symbolizer: &Symbolizer) -> String {
    let report = last_report(symbolizer);
    let [failure] = report.failures.as_slice() else { panic!("one failure: {report}") };
    failure.reason.clone()
}

/// Returns the only refused file of the module requested last.
pub fn last_refusal(symbolizer: &Symbolizer) -> Arc<SymbolFileError> {
    let report = last_report(symbolizer);
    let [refused] = report.refused.as_slice() else { panic!("one refused file: {report}") };
    refused.clone()
}

pub fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
    fs::write(path, bytes).expect("file");
}
