//! Answers of the server to requests of the protocol.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig, Tool as Described,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::select;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::error::ToolError;
use super::prompts;
use super::resources::{self, ResourceError};
use super::text;
use super::tool_session::ToolSession;
use super::tools::{TOOLS, Tool};
use super::words::in_words_of_tools;
use handlescope_session::cancel::Cancel;
use handlescope_session::terminal::Activity;

/// Instructions that an agent reads first.
const INSTRUCTIONS: &str = "Finds leaked Windows kernel handles and memory in ETW traces. Call load \
     with a trace, then why: it names process, type, function, rate and cause of each leak. diff \
     compares two traces; objects, groups, allocations and stack show details; sql answers anything \
     else. Answers come in pages: send `next` for more. Nulls, and zeros of events, are left out.";

/// Time between two signs of life to a client that asked for the progress of a call.
const SIGN_EVERY: Duration = Duration::from_secs(1);

/// The versions of the protocol that are spoken, oldest first: all but 2025-03-26, which demands that batches are read.
pub static VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The server. Calls of tools wait for each other, because they share one session.
pub struct ToolServer {
    pub session: Arc<Mutex<ToolSession>>,
    pub activity: Activity,
    pub read_only: bool,
}

/// Asks work to stop when its answer is not waited for any more.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ToolServer {
    /// Sends the elapsed seconds of a call, and its progress, to a client that asked for it, until
    /// dropped.
    async fn signs_of_life(
        &self,
        client: &Peer<RoleServer>,
        token: Option<ProgressToken>,
    ) -> Infallible {
        let Some(token) = token else { return pending().await };
        let start = Instant::now();
        loop {
            sleep(SIGN_EVERY).await;
            let seconds = start.elapsed().as_secs_f64();
            let mut progress = ProgressNotificationParam::new(token.clone(), seconds);
            progress.message = self.activity.text();
            // A client that has gone is noticed elsewhere.
            let _ = client.notify_progress(progress).await;
        }
    }

    /// Answers a call on a thread of its own.
    async fn call(
        &self,
        tool: &'static Tool,
        request: CallToolRequestParams,
    ) -> Result<Value, ToolError> {
        let cancel = Cancel::default();
        let _stop = StopOnDrop(cancel.clone());
        let mut session = Arc::clone(&self.session).lock_owned().await;
        let arguments = request.arguments.unwrap_or_default();
        let work = spawn_blocking(move || session.call(tool, &arguments, &cancel));
        // A command that panics is an error of the session already.
        work.await.unwrap_or_else(|error| Err(ToolError::Bug { reason: error.to_string() }))
    }
}

/// Whether a client knows answers that are structured.
fn has_structure(client: &Peer<RoleServer>) -> bool {
    let info = client.peer_info();
    info.is_none_or(|info| info.protocol_version.as_str() >= ProtocolVersion::V_2025_06_18.as_str())
}

/// Refuses a cursor of a list: each has one page, so that none was handed out.
fn only_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => {
            let reason = "this list has one page: leave 'cursor' out";
            Err(ErrorData::invalid_params(reason, None))
        }
        None => Ok(()),
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let program = Implementation::new("handlescope", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(program).with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&VERSIONS)
    }

    /// Offers a client that asks for an unknown version the one before, which it is more likely to
    /// know than the newest.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        let asked = request.protocol_version.as_str();
        let is_offered =
            |version: &&ProtocolVersion| version.has_initialize() && version.as_str() <= asked;
        if let Some(version) = VERSIONS.iter().rfind(is_offered) {
            result.protocol_version = version.clone();
        }
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(request)?;
        let has_structure = has_structure(&context.peer);
        let tools = TOOLS.iter().map(|tool| tool.described(self.read_only, has_structure));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Described> {
        Tool::named(name).map(|tool| tool.described(self.read_only, true))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool '{}'", request.name),
                None,
            ));
        };
        let token = context.meta.get_progress_token();
        let has_structure = has_structure(&context.peer);
        let work = context.ct.run_until_cancelled(self.call(tool, request));
        let answer = select! {
            answer = work => answer.unwrap_or(Err(ToolError::Cancelled)),
            never = self.signs_of_life(&context.peer, token) => match never {},
        };
        let result = match answer {
            Ok(mut page) => {
                let text = text::of_answer(&page, tool.names.rows);
                if has_structure && tool.has_lines() {
                    text::take(&mut page, tool.names.rows);
                }
                let mut result = CallToolResult::structured(page);
                // Each form once: older clients know no other content than text, which is JSON for them.
                if has_structure {
                    result.content = vec![ContentBlock::text(text)];
                } else {
                    result.structured_content = None;
                }
                result
            }
            Err(error) => {
                let text = in_words_of_tools(Some(tool), &error.to_string());
                CallToolResult::error(vec![ContentBlock::text(text)])
            }
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        only_page(request)?;
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(request)?;
        Ok(ListResourceTemplatesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let failed = |error: ResourceError| {
            ErrorData::resource_not_found(in_words_of_tools(None, &error.to_string()), None)
        };
        let page = resources::read(&request.uri).map_err(failed)?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(page, request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(request)?;
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompts::get(&request);
        Ok(prompt.map_err(|reason| ErrorData::invalid_params(reason, None))?.into())
    }
}
