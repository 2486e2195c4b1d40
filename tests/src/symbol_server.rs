//! A symbol server on the loopback interface, good or bad.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, thread};

/// The server's answer to a request.
#[derive(Debug, Clone)]
pub enum ServerAnswer {
    File(Vec<u8>),
    /// The file, cut off after this many bytes.
    CutOff(Vec<u8>, usize),
    /// Only a status.
    Status(u16),
    /// A redirect to another address.
    Redirect(String),
    /// Nothing; the connection stays open.
    Silence,
}

/// A server that answers every request in its own thread, until the process ends.
pub struct SymbolServer {
    /// The URL, as on a symbol path.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl SymbolServer {
    /// Starts a server. It calls `answer` with the requested path, without the leading slash.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start(answer: impl Fn(&str) -> ServerAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || {
                    let path = request(&stream);
                    log.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
                    respond(stream, answer(&path));
                });
            }
        });
        Self { url, asked }
    }

    /// Starts a server for the files below a folder, which is laid out like a symbol store.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn for_folder(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self::start(move |path| ServerAnswer::from_folder(&folder, path))
    }

    /// Returns the paths requested so far.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerAnswer {
    /// Answers with the file below a folder, or 404.
    #[must_use]
    pub fn from_folder(folder: &Path, path: &str) -> ServerAnswer {
        fs::read(folder.join(path)).map_or(ServerAnswer::Status(404), ServerAnswer::File)
    }
}

/// Reads the path of a request and ignores its headers.
fn request(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.find(String::is_empty);
    first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned()
}

fn respond(mut stream: TcpStream, answer: ServerAnswer) {
    let (status, header, body, sent) = match answer {
        ServerAnswer::File(body) => (200, String::new(), body, usize::MAX),
        ServerAnswer::CutOff(body, sent) => (200, String::new(), body, sent),
        ServerAnswer::Status(status) => (status, String::new(), Vec::new(), 0),
        ServerAnswer::Redirect(to) => (302, format!("Location: {to}\r\n"), Vec::new(), 0),
        ServerAnswer::Silence => {
            thread::sleep(Duration::from_secs(600));
            return;
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // A client that went away is no failure of the server.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.get(..sent.min(length)).unwrap_or_default());
}
