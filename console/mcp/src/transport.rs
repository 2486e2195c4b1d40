//! Messages of the protocol on standard input and output, with a limit on the requests that wait
//! for their answers.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    ClientNotification, ClientRequest, GetMeta, JsonRpcMessage, JsonRpcRequest, ProtocolVersion,
    RequestId,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio};
use rmcp::{ErrorData, RoleServer};
use tokio::io::{DuplexStream, Empty, Stdout, copy, duplex, empty};
use tokio::spawn;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lines::InputLines;
use super::message::{Message, MessageRefusal, read};
use super::server::VERSIONS;
use handlescope_session::cancel::Cancel;

/// Requests that are read before their answers are taken.
const MAX_WAITING: usize = 16;

/// Bytes of input that are read ahead, so that its end is seen while requests wait.
const READ_AHEAD: usize = 1 << 20;

/// Standard input and output, from which no request is read while too many wait.
pub struct BoundedTransport {
    lines: InputLines<DuplexStream>,
    output: AsyncRwTransport<RoleServer, Empty, Stdout>,
    /// An answer that is sent before the next line is read.
    refusing: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    /// Whether the client and the server have agreed on the version of the protocol.
    is_open: bool,
    places: Arc<Semaphore>,
    waiting: HashMap<RequestId, OwnedSemaphorePermit>,
}

impl BoundedTransport {
    /// Starts to read; `input_ended` is set when there is no more.
    pub fn start(input_ended: Cancel) -> Self {
        let (mut input, output) = stdio();
        let (mut ahead, read) = duplex(READ_AHEAD);
        spawn(async move {
            // An input that cannot be read has ended.
            let _ = copy(&mut input, &mut ahead).await;
            input_ended.cancel();
        });
        Self {
            lines: InputLines::new(read),
            output: AsyncRwTransport::new(empty(), output),
            refusing: None,
            is_open: false,
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            waiting: HashMap::new(),
        }
    }

    /// A message that may come now; `None` for one that is passed over.
    fn in_turn(&mut self, message: Message) -> Result<Option<Message>, MessageRefusal> {
        let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = &message else {
            // The SDK would end at any other first message.
            return Ok(Some(message).filter(|_| self.is_open));
        };
        let invalid = |reason| {
            Err(MessageRefusal {
                id: Some(id.clone()),
                error: ErrorData::invalid_request(reason, None),
            })
        };
        if self.waiting.contains_key(id) {
            return invalid("another request with this id is still pending");
        }
        let is_probe =
            matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_));
        if !self.is_open && !is_probe {
            if !opens(request) {
                return invalid("initialize must come first");
            }
            self.is_open = true;
        }
        Ok(Some(message))
    }
}

/// Whether a request says which version of the protocol the client speaks: `initialize`, or any that has it with
/// itself, as of 2026-07-28.
fn opens(request: &ClientRequest) -> bool {
    let meta = request.get_meta();
    let is_complete = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
    let is_known = |version: ProtocolVersion| VERSIONS.contains(&version);
    matches!(request, ClientRequest::InitializeRequest(_))
        || (is_complete && meta.protocol_version().is_some_and(is_known))
}

impl Transport<RoleServer> for BoundedTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let place = id.and_then(|id| self.waiting.remove(id));
        let sending = self.output.send(message);
        async move {
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let message = loop {
            // This may be dropped at any wait, and called again.
            if let Some(refusing) = &mut self.refusing {
                refusing.await.ok()?;
                self.refusing = None;
            }
            let line = self.lines.next().await.ok()??;
            let message = read(&line)
                .and_then(|message| message.map_or(Ok(None), |message| self.in_turn(message)));
            match message {
                Ok(Some(message)) => break message,
                Ok(None) => {}
                Err(MessageRefusal { id, error }) => {
                    let answer = JsonRpcMessage::error(error, id);
                    self.refusing = Some(Box::pin(self.output.send(answer)));
                }
            }
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                self.waiting.insert(request.id.clone(), place);
            }
            // A request that was cancelled gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.waiting.remove(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}
