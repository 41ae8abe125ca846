//! A server of the interface on the loopback, in one thread, that does what a test tells it to.

use holotype_models::{CallLimits, Client, Clock, Endpoint};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A deed of the server, once it has read a request.
pub(crate) enum Act {
    /// Answers with a status, headers and a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Answers nothing until the client hangs up.
    Stall,
    /// Sends the head and half of the body, then nothing until the client hangs up.
    StallInBody(String),
    /// Sends 50 MB; the length is stated before or not.
    FiftyMegabytes {
        /// True with the header `Content-Length`.
        stated: bool,
    },
    /// Promises more bytes than it sends, and hangs up.
    CutOff(String),
    /// Hangs up.
    HangUp,
}

impl Act {
    /// A body of JSON with status 200.
    pub(crate) fn body(body: &Value) -> Act {
        Act::Answer(200, Vec::new(), body.to_string())
    }

    /// A completion with this text.
    pub(crate) fn says(text: &str) -> Act {
        let message = json!({"role": "assistant", "content": text});
        Act::body(&json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    }

    /// A status without a body.
    pub(crate) fn status(status: u16) -> Act {
        Act::Answer(status, Vec::new(), String::new())
    }
}

/// A request as the server read it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Request {
    /// The inputs of the role: the message of the user as JSON.
    pub(crate) fn inputs(&self) -> Value {
        serde_json::from_str(self.message(1)).unwrap_or_default()
    }

    /// The text of a message.
    pub(crate) fn message(&self, nth: usize) -> &str {
        self.body["messages"][nth]["content"].as_str().unwrap_or_default()
    }
}

/// The server; its thread ends with it.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Does what a function says, given the number of the request, from 0, and the request.
    pub(crate) fn new(mut act: impl FnMut(usize, &Request) -> Act + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, stopped) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, stop) = (Arc::clone(&requests), Arc::clone(&stopped));
        let thread = std::thread::spawn(move || {
            for nth in 0.. {
                let Ok((stream, _)) = listener.accept() else { return };
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Some(request) = read(&stream) else { continue };
                seen.lock().unwrap().push(request.clone());
                // A client that hangs up early makes writing fail, which is what some tests are about.
                let _ = perform(act(nth, &request), stream);
            }
        });
        Server { address, requests, stopped, thread: Some(thread) }
    }

    /// Does one thing after the other, and hangs up on what comes then.
    pub(crate) fn script(acts: Vec<Act>) -> Server {
        let mut acts = acts.into_iter();
        Server::new(move |_, _| acts.next().unwrap_or(Act::HangUp))
    }

    /// Says the same to everybody.
    pub(crate) fn always(text: &'static str) -> Server {
        Server::new(move |_, _| Act::says(text))
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&format!("http://{}/v1", self.address), "fake").unwrap()
    }

    /// A client on a clock of its own that waits for nothing.
    pub(crate) fn client(&self, limits: CallLimits) -> (Client, Arc<Ticks>) {
        let clock = Arc::new(Ticks::default());
        (Client::with(self.endpoint(), limits).unwrap().on_clock(clock.clone()), clock)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the server panicked");
        }
    }
}

/// Limits that let a test of a stall end soon; everything else answers at once on the loopback.
pub(crate) fn limits() -> CallLimits {
    CallLimits { tries: 3, response_bytes: 64 << 10, batch: 3, ..CallLimits::default() }
}

/// A clock that only waits move on, and that keeps them.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    waits: Mutex<Vec<Duration>>,
}

impl Ticks {
    /// The waits so far, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u128> {
        self.waits.lock().unwrap().iter().map(Duration::as_millis).collect()
    }
}

impl Clock for Ticks {
    fn now(&self) -> Duration {
        self.waits.lock().unwrap().iter().sum()
    }

    fn wait(&self, duration: Duration) {
        self.waits.lock().unwrap().push(duration);
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.to_lowercase().split_once("content-length: ")?.1.split_once('\r')?.0.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Request { path, body: serde_json::from_slice(&body).ok()?, head })
}

fn perform(act: Act, mut stream: TcpStream) -> std::io::Result<()> {
    match act {
        Act::Answer(status, headers, body) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            send(&mut stream, &format!("{status} Status"), &headers, Some(body.len()))?;
            stream.write_all(body.as_bytes())
        }
        Act::Stall => until_hung_up(&mut stream),
        Act::StallInBody(body) => {
            send(&mut stream, "200 OK", "", Some(body.len()))?;
            stream.write_all(&body.as_bytes()[..body.len() / 2])?;
            until_hung_up(&mut stream)
        }
        Act::FiftyMegabytes { stated } => {
            send(&mut stream, "200 OK", "", stated.then_some(50_000_000))?;
            stream.write_all(b"{\"choices\": \"")?;
            for _ in 0..50 {
                stream.write_all(&vec![b'x'; 1_000_000])?;
            }
            Ok(())
        }
        Act::CutOff(body) => {
            send(&mut stream, "200 OK", "", Some(body.len() + 100))?;
            stream.write_all(body.as_bytes())
        }
        Act::HangUp => Ok(()),
    }
}

fn send(stream: &mut TcpStream, status: &str, headers: &str, length: Option<usize>) -> std::io::Result<()> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    let kind = "Content-Type: application/json\r\nConnection: close\r\n";
    stream.write_all(format!("HTTP/1.1 {status}\r\n{kind}{headers}{length}\r\n").as_bytes())
}

fn until_hung_up(stream: &mut TcpStream) -> std::io::Result<()> {
    while stream.read(&mut [0; 64])? > 0 {}
    Ok(())
}
