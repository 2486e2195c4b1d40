//! The program as an MCP server, and the JSON lines that a client exchanges with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use crate::binary::{ProgramRun, Shell, handlescope, sample_symbols, sample_trace};
use crate::folders::copy_folder;

/// Maximum time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server.
#[derive(Debug)]
pub struct McpServer {
    program: Child,
    input: Option<ChildStdin>,
    answers: Receiver<Value>,
    /// Answers that arrived while waiting for another one.
    early: Vec<Value>,
    last_id: u64,
}

impl McpServer {
    /// Starts `handlescope mcp` like [`McpServer::uninitialized`], and agrees on the protocol with it.
    ///
    /// # Panics
    /// If it does not start, or prints anything that is not a protocol message.
    #[must_use]
    pub fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut server = Self::uninitialized(home, arguments);
        let answer = server.initialize("2025-06-18");
        assert_eq!(answer["result"]["serverInfo"]["name"], "handlescope", "{answer}");
        server
    }

    /// Starts `handlescope mcp` with these arguments in `home`. Its folder `tmp` is the only one for temporary files.
    ///
    /// # Panics
    /// If it does not start, or prints anything that is not a protocol message.
    #[must_use]
    pub fn uninitialized(home: &Path, arguments: &[&str]) -> Self {
        fs::create_dir_all(home.join("tmp")).expect("a folder can be made");
        let mut program = handlescope(home)
            .arg("mcp")
            .args(arguments)
            .env("TMPDIR", home.join("tmp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(program.stdout.take().expect("standard output is piped"));
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).expect("a line of JSON");
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let input = program.stdin.take();
        Self { program, input, answers, early: Vec::new(), last_id: 0 }
    }

    /// Asks for a protocol version, and returns the server's answer.
    ///
    /// # Panics
    /// If there is no answer.
    pub fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", &hello);
        self.notify("notifications/initialized", &json!({}));
        answer
    }

    /// Starts a server that may read `traces` in the folder of a shell, with the sample and its `symbols`.
    ///
    /// # Panics
    /// If they cannot be copied, or like [`McpServer::start`].
    #[must_use]
    pub fn with_sample(shell: &Shell, options: &[&str]) -> Self {
        let traces = shell.path("traces");
        copy_folder(&sample_symbols(), &traces.join("symbols"));
        fs::copy(sample_trace(), traces.join("leaky.etl")).expect("the sample can be copied");
        Self::start(&shell.path(""), &[&["--root", "traces"], options].concat())
    }

    /// Loads the sample with its symbols.
    ///
    /// # Panics
    /// If that fails.
    pub fn load_sample(&mut self) -> Value {
        let sample = json!({"paths": ["leaky.etl"], "symbols": ["symbols"]});
        self.call("load", &sample).expect("the sample can be loaded")
    }

    /// Returns the process id of the server.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Sends a request, and returns its number.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a notification.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for the answer to the request with this number.
    ///
    /// # Panics
    /// If it does not come.
    pub fn receive(&mut self, id: u64) -> Value {
        if let Some(at) = self.early.iter().position(|answer| answer["id"] == id) {
            return self.early.swap_remove(at);
        }
        loop {
            let answer = self.next_message();
            if answer["id"] == id {
                return answer;
            }
            self.early.push(answer);
        }
    }

    /// Waits for the server's next message, whatever it answers.
    ///
    /// # Panics
    /// If none comes.
    pub fn next_message(&mut self) -> Value {
        self.answers.recv_timeout(ANSWER_TIMEOUT).expect("an answer comes in time")
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Panics
    /// If it does not come.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.receive(id)
    }

    /// Calls a tool and returns its answer.
    ///
    /// # Errors
    /// The text of the tool's error.
    ///
    /// # Panics
    /// If no answer comes, or if it contains nulls or repeats its content as text.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", &params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{tool} {arguments}: {answer}"));
        if result["isError"] == true {
            return Err(text.to_owned());
        }
        let content = result["structuredContent"].clone();
        assert!(serde_json::from_str::<Value>(text).is_err(), "{tool}: the same JSON twice");
        assert!(!content.to_string().contains(":null"), "{tool}: {content}");
        Ok(content)
    }

    /// Collects the rows of all pages of a tool's answer, with at most this many rows per page; returns them with the
    /// pages.
    ///
    /// # Panics
    /// If a page is an error.
    pub fn pages(
        &mut self,
        tool: &str,
        arguments: &Value,
        rows: &str,
        top: usize,
    ) -> (Vec<Value>, Vec<Value>) {
        let mut arguments = arguments.clone();
        arguments["top"] = top.into();
        let (mut all, mut pages) = (Vec::new(), Vec::new());
        loop {
            let page =
                self.call(tool, &arguments).unwrap_or_else(|error| panic!("{tool}: {error}"));
            let shown = page["document"][rows].as_array().unwrap_or_else(|| panic!("{page}"));
            assert!(shown.len() <= top, "{tool}: {} rows", shown.len());
            all.extend(shown.iter().cloned());
            let next = page.get("next").cloned();
            pages.push(page);
            let Some(next) = next else { return (all, pages) };
            assert_eq!(next["tool"], tool);
            arguments = next["arguments"].clone();
        }
    }

    /// Closes the input and waits for the program to exit.
    ///
    /// # Panics
    /// If it cannot be waited for.
    #[must_use]
    pub fn end(mut self) -> ProgramRun {
        drop(self.input.take());
        let status = self.program.wait().expect("the program ends").code();
        let mut stderr = String::new();
        let errors = self.program.stderr.take();
        errors.map(|mut errors| errors.read_to_string(&mut stderr));
        ProgramRun { stdout: String::new(), stderr, status }
    }

    /// Sends a line that need not be a message.
    ///
    /// # Panics
    /// If the server has exited.
    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("standard input is open");
        input.write_all(&[line, b"\n"].concat()).expect("the server reads");
    }

    fn write(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        // A failing test leaves no server behind.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
