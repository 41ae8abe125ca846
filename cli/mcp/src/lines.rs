//! The protocol over standard input and output: one JSON message a line.
//!
//! A thread reads lines and one writes them, since a read of standard input cannot be cancelled. Invariants:
//!
//! 1. Every line that is no message is answered with an error, and the next one is read: nothing is passed over in
//!    silence, and nothing ends the server but the end of its input.
//! 2. A line longer than [`MOST_BYTES`] is answered and skipped without being kept.
//! 3. A message is written and flushed before its sending ends.
//! 4. [`GRACE`] after the end of input, statements that still run are stopped.

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::io::{self, BufRead, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The most bytes of one message.
const MOST_BYTES: usize = 16 << 20;
/// The time for answers that are under way at the end of input.
const GRACE: Duration = Duration::from_millis(500);

/// One line of input.
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// One line of output, and the outcome of writing it for who waits.
type Written = (Vec<u8>, Option<oneshot::Sender<io::Result<()>>>);

/// Standard input and output as a transport.
pub(crate) struct Lines {
    input: mpsc::Receiver<Line>,
    output: Option<mpsc::UnboundedSender<Written>>,
    /// True once a session began: before that, only requests mean something.
    begun: bool,
    ending: Arc<AtomicBool>,
}

impl Lines {
    /// Takes over standard input and output.
    pub(crate) fn new(ending: Arc<AtomicBool>) -> io::Result<Lines> {
        let (lines, input) = mpsc::channel(16);
        let (output, written) = mpsc::unbounded_channel();
        thread::Builder::new().name("mcp-input".to_owned()).spawn(move || read_lines(&lines))?;
        thread::Builder::new().name("mcp-output".to_owned()).spawn(move || write_lines(written))?;
        Ok(Lines { input, output: Some(output), begun: false, ending })
    }

    /// Answers a line that is no message.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>) {
        if let (Some(output), Ok(line)) = (&self.output, line_of(&JsonRpcMessage::error(error, id))) {
            // Nobody reads any longer if that fails.
            let _ = output.send((line, None));
        }
    }

    /// The message of a line, if it is one that may come now.
    fn message(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("the line is no JSON: {error}; send one JSON-RPC message a line");
                self.refuse(ErrorData::parse_error(message, None), None);
                return None;
            }
        };
        let message = match ClientJsonRpcMessage::deserialize_from(&value) {
            Ok(message) => message,
            Err(told) => {
                let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
                self.refuse(ErrorData::invalid_request(told, None), id);
                return None;
            }
        };
        match &message {
            JsonRpcMessage::Request(request) => self.begun |= begins(&request.request),
            _ if !self.begun => return None,
            _ => {}
        }
        Some(message)
    }
}

/// Reading a message from a parsed line.
trait DeserializeFrom: Sized {
    fn deserialize_from(value: &Value) -> Result<Self, String>;
}

impl DeserializeFrom for ClientJsonRpcMessage {
    fn deserialize_from(value: &Value) -> Result<Self, String> {
        if value.is_array() {
            return Err("batches are not part of the protocol; send one message a line".to_owned());
        }
        let told = "the line is no JSON-RPC 2.0 message with a known shape; it needs `jsonrpc`, `method` and, to be \
                    answered, an `id`";
        serde_json::from_value(value.clone()).map_err(|_| told.to_owned())
    }
}

/// True if a request begins a session: by `initialize`, or by naming its protocol version itself.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let known = meta.protocol_version().is_some_and(|of| ProtocolVersion::KNOWN_VERSIONS.contains(&of));
            known && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

fn line_of(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (done, outcome) = oneshot::channel();
        // The line is in its place among the others before anything is waited for.
        let sent = line_of(&message).and_then(|line| {
            let output = self.output.as_ref().ok_or_else(closed)?;
            output.send((line, Some(done))).map_err(|_| closed())
        });
        async move {
            sent?;
            outcome.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.input.recv().await {
                Some(Line::Whole(line)) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Some(Line::TooLong) => {
                    let message = format!("the line has more than {} MiB; send less at once", MOST_BYTES >> 20);
                    self.refuse(ErrorData::invalid_request(message, None), None);
                }
                None => {
                    let ending = Arc::clone(&self.ending);
                    tokio::spawn(async move {
                        tokio::time::sleep(GRACE).await;
                        ending.store(true, Ordering::Relaxed);
                    });
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output = None;
        Ok(())
    }
}

/// Reads standard input to its end; a last line without a line end counts.
fn read_lines(lines: &mpsc::Sender<Line>) {
    let mut input = io::stdin().lock();
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let (taken, ends) = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) | Ok([]) => break,
            Ok(read) => {
                let end = read.iter().position(|byte| *byte == b'\n');
                let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
                too_long |= line.len() + part.len() > MOST_BYTES;
                if !too_long {
                    line.extend_from_slice(part);
                }
                (part.len() + usize::from(end.is_some()), end.is_some())
            }
        };
        input.consume(taken);
        if ends && lines.blocking_send(take(&mut line, &mut too_long)).is_err() {
            return;
        }
    }
    if !line.is_empty() || too_long {
        let _ = lines.blocking_send(take(&mut line, &mut too_long));
    }
}

fn take(line: &mut Vec<u8>, too_long: &mut bool) -> Line {
    let line = std::mem::take(line);
    if std::mem::take(too_long) { Line::TooLong } else { Line::Whole(line) }
}

fn write_lines(mut written: mpsc::UnboundedReceiver<Written>) {
    let mut output = io::stdout().lock();
    while let Some((line, done)) = written.blocking_recv() {
        let outcome = output.write_all(&line).and_then(|()| output.flush());
        if let Some(done) = done {
            let _ = done.send(outcome);
        }
    }
}
