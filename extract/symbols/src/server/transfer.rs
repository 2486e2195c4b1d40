//! Transfers a file from an address into a partial file, continuing an earlier attempt.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName,
    IF_RANGE, LAST_MODIFIED, RANGE,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use crate::options::{DownloadBudget, SymbolizerOptions};
use crate::report::{ErrorChain, SymbolFileError};
use crate::server::partial::{Partial, PartialSource, ReceivedFile};
use crate::speed::{GivenUp, MinSpeed, SpeedCheck, after};

/// Maximum number of requests for one file; each continues the previous one.
const MAX_REQUESTS: usize = 8;
/// Timeout of connections; a running machine accepts one at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REDIRECTS: usize = 10;
/// How often a waiting thread checks whether another one gave up the server.
const TICK: Duration = Duration::from_millis(100);

const NO_ANSWER: &str = "no answer in time";

/// Settings of file transfers.
pub struct Transfer {
    client: Client,
    /// Timeout for a server's first answer and between bytes.
    silence_timeout: Duration,
    min_speed: MinSpeed,
    max_bytes: u64,
    budget: DownloadBudget,
}

/// Reasons why there is no file.
#[derive(Debug)]
pub enum Failure {
    /// The server has no such file.
    Missing,
    /// The server sent an unexpected response.
    Failed(String),
    /// The server does not respond, or sends too slowly.
    Silent(String),
    /// The file is unusable, or could not be written.
    File(SymbolFileError),
}

/// Reasons why a body broke off, so that the rest must be requested.
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error("{}", ErrorChain(.0))]
    Broken(reqwest::Error),
    /// It ended early, after this many bytes.
    #[error("{sent} of {total} bytes were sent")]
    Short { sent: u64, total: u64 },
}

#[cfg(test)]
const _: () = assert!(size_of::<Failure>() < 128);

impl From<GivenUp> for Failure {
    fn from(reason: GivenUp) -> Self {
        Self::Silent(reason.to_string())
    }
}

/// What a request is for.
pub struct ServerRequest<'a> {
    pub url: &'a str,
    /// The address as shown in messages and stored beside the partial file.
    pub shown: &'a str,
    /// Path of the file until it is complete.
    pub partial: &'a Path,
    /// The first bytes of every such file, so that a web page is not taken for one.
    pub magic: &'a [u8],
    /// Whether another thread has given up the server.
    pub is_given_up: &'a dyn Fn() -> bool,
}

impl Transfer {
    pub fn new(options: &SymbolizerOptions) -> reqwest::Result<Self> {
        let silence_timeout = options.download_timeout;
        let client = Client::builder();
        // Test servers run on this machine and must not be reached through a proxy.
        #[cfg(test)]
        let client = client.no_proxy();
        let client = client
            .user_agent(concat!("handlescope/", env!("CARGO_PKG_VERSION")))
            // As symsrv does, because of https://github.com/seanmonstar/reqwest/issues/1761
            .http1_only()
            .connect_timeout(silence_timeout.min(CONNECT_TIMEOUT))
            .redirect(Policy::custom(follow_redirect))
            .build()?;
        let (min_speed, max_bytes) = (options.min_speed, options.max_file_bytes);
        let budget = options.download_budget.clone();
        Ok(Self { client, silence_timeout, min_speed, max_bytes, budget })
    }

    /// Downloads a file; calls `progress` with the bytes so far and in total.
    pub async fn file(
        &self,
        request: &ServerRequest<'_>,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<ReceivedFile, Failure> {
        let mut partial = Partial::left_over(request.partial, request.shown);
        let mut cut = None;
        // Measured over all requests together; otherwise each could deliver a single byte.
        let mut speed = None;
        for _ in 0..MAX_REQUESTS {
            if let Some(whole) = partial.take_if(|partial| is_whole(partial)) {
                return Ok(whole.finish());
            }
            let asking = self.request(request.url, partial.as_ref());
            let response = self.send(asking, request.is_given_up).await?;
            let (mut open, before) = match self.begin(&response, request, partial.take())? {
                Some(open) => open,
                None => continue,
            };
            let speed =
                speed.get_or_insert_with(|| SpeedCheck::new(self.min_speed, self.silence_timeout));
            match self.body(response, request, &mut open, speed, progress).await {
                Ok(None) => return Ok(open.finish()),
                Ok(Some(cause)) => {
                    cut = Some(cause);
                    speed.check()?;
                }
                Err(Failure::File(error)) => {
                    // A later session can continue a file of known size.
                    let is_useful = matches!(error, SymbolFileError::TooManyDownloads { .. })
                        && open.source().total.is_some();
                    if !is_useful {
                        open.discard();
                    }
                    return Err(Failure::File(error));
                }
                Err(failure) => return Err(failure),
            }
            if open.len() == before {
                break;
            }
            partial = Some(open);
        }
        let cause = cut.map_or_else(String::new, |cut| format!(": {cut}"));
        Err(Failure::Failed(format!("the download broke off{cause}")))
    }

    /// Downloads a small file.
    pub async fn bytes(
        &self,
        request: &ServerRequest<'_>,
        max_bytes: u64,
    ) -> Result<Vec<u8>, Failure> {
        let mut response = self.send(self.client.get(request.url), request.is_given_up).await?;
        check_status(response.status())?;
        let deadline = after(Instant::now(), self.silence_timeout);
        let mut bytes = Vec::new();
        while let Some(chunk) = timeout_at(deadline, response.chunk())
            .await
            .map_err(|_| Failure::Silent(NO_ANSWER.to_owned()))?
            .map_err(|error| Failure::Failed(ErrorChain(&error.without_url()).to_string()))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > max_bytes {
                return Err(Failure::Missing);
            }
        }
        Ok(bytes)
    }

    fn request(&self, url: &str, partial: Option<&Partial>) -> RequestBuilder {
        // Without this header, Google's storage unpacks files itself and supports no ranges.
        let mut request = self.client.get(url).header(ACCEPT_ENCODING, "gzip");
        if let Some(partial) = partial {
            request = request.header(RANGE, format!("bytes={}-", partial.len()));
            let validator = &partial.source().validator;
            // RFC 9110, 13.1.5: a weak validator is not allowed here.
            if !validator.is_empty() && !validator.starts_with("W/") {
                request = request.header(IF_RANGE, validator);
            }
        }
        request
    }

    async fn send(
        &self,
        request: RequestBuilder,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Response, Failure> {
        let deadline = after(Instant::now(), self.silence_timeout);
        let mut sending = std::pin::pin!(request.send());
        loop {
            let tick = deadline.min(Instant::now() + TICK);
            match timeout_at(tick, sending.as_mut()).await {
                Err(_) if is_given_up() || Instant::now() >= deadline => {
                    return Err(Failure::Silent(NO_ANSWER.to_owned()));
                }
                Err(_) => {}
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => return Err(unsent(error)),
            }
        }
    }

    /// Returns the file to append the body to and its previous length; `None` to request the whole file again.
    fn begin(
        &self,
        response: &Response,
        request: &ServerRequest<'_>,
        partial: Option<Partial>,
    ) -> Result<Option<(Partial, u64)>, Failure> {
        let headers = response.headers();
        let status = response.status();
        if let Some(partial) = partial {
            let source =
                source(request.shown, headers, content_range(headers).map(|(_, total)| total));
            let continues = status == StatusCode::PARTIAL_CONTENT
                && content_range(headers).is_some_and(|(start, _)| start == partial.len())
                && is_same(partial.source(), &source);
            if continues {
                let len = partial.len();
                return Ok(Some((partial, len)));
            }
            if status == StatusCode::PARTIAL_CONTENT || status == StatusCode::RANGE_NOT_SATISFIABLE
            {
                partial.discard();
                return Ok(None);
            }
        }
        check_status(status)?;
        let source = source(request.shown, headers, number(headers, &CONTENT_LENGTH));
        if !matches!(source.encoding.as_str(), "" | "gzip") {
            return Err(Failure::Failed(format!("unknown encoding {:?}", source.encoding)));
        }
        if source.total.is_some_and(|total| total > self.max_bytes) {
            return Err(self.too_large(request));
        }
        let partial = Partial::create(request.partial, source).map_err(unwritten(request))?;
        Ok(Some((partial, 0)))
    }

    /// Reads the body of a response; returns the reason if it broke off.
    async fn body(
        &self,
        mut response: Response,
        request: &ServerRequest<'_>,
        partial: &mut Partial,
        speed: &mut SpeedCheck,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<Option<Cut>, Failure> {
        let total = partial.source().total;
        let magic: &[u8] =
            if partial.source().encoding.is_empty() { request.magic } else { &[0x1f, 0x8b] };
        let mut start = Vec::new();
        speed.answered();
        progress(partial.len(), total);
        loop {
            let chunk = match timeout_at(speed.deadline(), response.chunk()).await {
                Err(_) => {
                    speed.check()?;
                    continue;
                }
                Ok(Err(error)) => {
                    return Ok(Some(Cut::Broken(error.without_url())));
                }
                Ok(Ok(None)) => break,
                Ok(Ok(Some(chunk))) => chunk,
            };
            if partial.len() == start.len() as u64 && start.len() < magic.len() {
                start.extend(chunk.iter().take(magic.len() - start.len()));
                if !magic.starts_with(&start) {
                    let source = "it is not a symbol file".into();
                    let path = PathBuf::from(request.shown);
                    return Err(Failure::File(SymbolFileError::Malformed { path, source }));
                }
            }
            if partial.len() + chunk.len() as u64 > self.max_bytes {
                return Err(self.too_large(request));
            }
            self.budget.spend(chunk.len() as u64).map_err(Failure::File)?;
            partial.append(&chunk).map_err(unwritten(request))?;
            speed.came(chunk.len());
            progress(partial.len(), total);
        }
        let missing = total.filter(|total| *total != partial.len());
        Ok(missing.map(|total| Cut::Short { sent: partial.len(), total }))
    }

    fn too_large(&self, request: &ServerRequest<'_>) -> Failure {
        let path = PathBuf::from(request.shown);
        Failure::File(SymbolFileError::TooLarge { path, limit: self.max_bytes })
    }
}

/// Follows redirects, even to other hosts, but not from HTTPS to HTTP.
fn follow_redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let was_secure = attempt.previous().iter().any(|url| url.scheme() == "https");
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("too many redirects")
    } else if was_secure && attempt.url().scheme() != "https" {
        attempt.error("a redirect from https to http")
    } else {
        attempt.follow()
    }
}

fn check_status(status: StatusCode) -> Result<(), Failure> {
    match status {
        StatusCode::OK => Ok(()),
        // 410 Gone means the same as 404 Not Found.
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(Failure::Missing),
        status => Err(Failure::Failed(format!("the server returned status code {status}"))),
    }
}

fn is_whole(partial: &Partial) -> bool {
    partial.source().total == Some(partial.len())
}

/// Whether the bytes of the response continue the partial file.
fn is_same(stored: &PartialSource, now: &PartialSource) -> bool {
    stored.encoding == now.encoding
        && stored.total.is_none_or(|total| now.total == Some(total))
        && (stored.validator == now.validator || stored.validator.is_empty())
}

fn source(url: &str, headers: &HeaderMap, total: Option<u64>) -> PartialSource {
    // The text of a header cannot contain line breaks or other control characters.
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let validator = if headers.contains_key(ETAG) { text(ETAG) } else { text(LAST_MODIFIED) };
    PartialSource {
        url: url.to_owned(),
        validator: validator.to_owned(),
        encoding: text(CONTENT_ENCODING).trim().to_ascii_lowercase().replace("identity", ""),
        total,
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Parses the first byte and the total size from `bytes FIRST-LAST/ALL`.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64)> {
    let (range, total) =
        headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()?))
}

fn unsent(error: reqwest::Error) -> Failure {
    let is_silent = error.is_connect() || error.is_timeout();
    let reason = ErrorChain(&error.without_url()).to_string();
    if is_silent { Failure::Silent(reason) } else { Failure::Failed(reason) }
}

fn unwritten(request: &ServerRequest<'_>) -> impl Fn(io::Error) -> Failure {
    let path = request.partial.to_owned();
    move |source| Failure::File(SymbolFileError::Io { action: "write", path: path.clone(), source })
}
