//! `handlescope mcp`: a server of the [Model Context Protocol](https://modelcontextprotocol.io), for agents.
//!
//! The protocol's messages are the only thing on standard output. A tool runs a command of the console in one
//! session, one after the other, and answers with the command's JSON document, page by page.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

mod answer;
mod brief;
mod cut;
mod error;
mod hints;
mod input;
mod lines;
mod message;
mod output;
mod prompts;
mod resources;
mod rows;
mod server;
mod text;
mod tool_session;
mod tools;
mod transport;
mod window;
mod words;
mod worker;

use clap::Args;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use handlescope_model::inspect_opened;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::runtime::Builder;
use tokio::select;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use self::server::ToolServer;
use self::tool_session::ToolSession;
use self::transport::BoundedTransport;
use handlescope_commands::CommandError;
use handlescope_commands::console::Console;
use handlescope_commands::script::ScriptOutcome;
use handlescope_session::cancel::Cancel;
use handlescope_session::paths::Roots;
use handlescope_session::settings::SymbolDownload;
use handlescope_session::terminal::Messages;

/// Access that `mcp` has.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Folder whose files may be read, with its subfolders; may be given several times. Default: the current
    /// folder.
    #[arg(long = "root", value_name = "FOLDER")]
    pub roots: Vec<PathBuf>,

    /// Allow writing extracts beside their traces, and keeping symbols that servers send.
    #[arg(long)]
    pub allow_write: bool,

    /// Answer the SQL of a server that started this process.
    #[arg(long, hide = true)]
    pub worker: bool,
}

/// Stack size for commands: that of the main thread of a program.
const STACK_BYTES: usize = 8 << 20;

/// Time between two checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time for the client to take the last answers after the end of the input or a signal.
const LAST_ANSWERS: Duration = Duration::from_millis(1500);

/// Further time to wait for a command that was cancelled.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(300);

/// Serves until standard input ends or a signal comes.
///
/// # Errors
/// When a root is not a folder, or what the client sends is not the protocol.
pub fn run(
    mut console: Console,
    args: &McpArgs,
    messages: &mut Messages<'_>,
) -> Result<ScriptOutcome, CommandError> {
    // Only servers that are named are asked for symbols: no agent and no trace is to cause a request.
    console.session.settings.session.symbol_download = Some(SymbolDownload::Never);
    let here = [PathBuf::from(".")];
    let roots = Arc::new(Roots::new(if args.roots.is_empty() { &here } else { &args.roots })?);
    let opened = Arc::clone(&roots);
    inspect_opened(Box::new(move |path, file| opened.check_opened(path, file)));
    if args.worker {
        worker::serve(console)?;
        return Ok(ScriptOutcome::Worked);
    }
    let signals = console.cancel.clone();
    if io::stdin().is_terminal() {
        messages.note(
            "waiting for a client of the Model Context Protocol on standard input; see docs/mcp.md",
        );
    }
    let session = ToolSession::new(console, roots, !args.allow_write, messages)?;
    let activity = session.activity();
    let session = Arc::new(Mutex::new(session));
    let runtime =
        Builder::new_current_thread().enable_all().thread_stack_size(STACK_BYTES).build()?;
    let server =
        ToolServer { session: Arc::clone(&session), activity, read_only: !args.allow_write };
    let ended = runtime.block_on(async {
        let ended = serve(server, signals).await;
        // What runs was cancelled; the session goes with it.
        let _ = timeout(SHUTDOWN_TIMEOUT, session.lock()).await;
        ended
    });
    // A read of standard input that waits has no end.
    runtime.shutdown_background();
    ended
}

async fn serve(server: ToolServer, signals: Cancel) -> Result<ScriptOutcome, CommandError> {
    let failed = |reason: String| CommandError::Server { reason };
    let outcome = |signals: &Cancel| {
        if signals.is_cancelled() { ScriptOutcome::Cancelled } else { ScriptOutcome::Worked }
    };
    let stop = Default::default();
    let input_ended = Cancel::default();
    let transport = BoundedTransport::start(input_ended.clone());
    let starting = server.serve_with_ct(transport, Clone::clone(&stop));
    let serving = async {
        match starting.await {
            Ok(running) => running.waiting().await.map_err(|error| failed(error.to_string()))?,
            // The client has gone before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                return Ok(());
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        Ok(())
    };
    let ending = async {
        while !signals.is_cancelled() && !input_ended.is_cancelled() {
            sleep(LOOK_EVERY).await;
        }
        if signals.is_cancelled() {
            stop.cancel();
        }
        sleep(LAST_ANSWERS).await;
        stop.cancel();
    };
    select! {
        ended = serving => ended?,
        // The client does not read.
        () = ending => {}
    }
    Ok(outcome(&signals))
}
