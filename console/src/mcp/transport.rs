//! Messages of the protocol on standard input and output, of which only so many requests wait for their answers.

use std::{collections::HashMap, future::Future, io, sync::Arc};

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport, stdio},
};
use tokio::{
    io::{DuplexStream, Stdout, copy, duplex},
    spawn,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::cancel::Cancel;

/// Requests that are read before their answers are taken.
const MOST_WAITING: usize = 16;

/// Bytes of input that are read ahead, so that its end is seen while requests wait.
const READ_AHEAD: usize = 1 << 20;

/// Standard input and output, from which no request is read while too many wait.
pub(super) struct BoundedTransport {
    inner: AsyncRwTransport<RoleServer, DuplexStream, Stdout>,
    places: Arc<Semaphore>,
    waiting: HashMap<RequestId, OwnedSemaphorePermit>,
}

impl BoundedTransport {
    /// Starts to read; `input_ended` is set when there is no more.
    pub(super) fn start(input_ended: Cancel) -> Self {
        let (mut input, output) = stdio();
        let (mut ahead, read) = duplex(READ_AHEAD);
        spawn(async move {
            // An input that cannot be read has ended.
            let _ = copy(&mut input, &mut ahead).await;
            input_ended.cancel();
        });
        let places = Arc::new(Semaphore::new(MOST_WAITING));
        Self { inner: AsyncRwTransport::new(read, output), places, waiting: HashMap::new() }
    }
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
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let message = self.inner.receive().await?;
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
        self.inner.close().await
    }
}
