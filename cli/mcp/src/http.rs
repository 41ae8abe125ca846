//! The protocol over HTTP: `POST /mcp`, an answer for each request, no sessions.
//!
//! | from | what is asked |
//! |---|---|
//! | this machine (a loopback address) | a `Host` and, where there is one, an `Origin` of this machine |
//! | elsewhere | the token in `Authorization: Bearer`, and an address that was stated with `--token-file` |
//!
//! With a token file, the token is asked of everybody.

use crate::Error;
use crate::server::Server;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// The address without another.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8420";
/// The path of the protocol.
const PATH: &str = "/mcp";
/// The most bytes of one request.
const MOST_BYTES: usize = 16 << 20;
/// Connections at once.
const CONNECTIONS: usize = 256;
/// The time in which a request must have sent its headers.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// Characters of the shortest token.
const SHORTEST_TOKEN: usize = 16;
/// The pause after a connection that could not be accepted: files are short.
const PAUSE: Duration = Duration::from_millis(100);

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<Server, NeverSessionManager>;

/// Address and token of a server.
#[derive(Debug)]
pub(crate) struct Door {
    address: SocketAddr,
    token: Option<Arc<str>>,
}

impl Door {
    /// # Errors
    /// The address is none, or not of this machine and there is no token; the token file cannot be used.
    pub(crate) fn new(address: &str, token_file: Option<&Path>) -> Result<Door, Error> {
        let token = token_file.map(read_token).transpose()?;
        let parsed = match address.parse::<u16>() {
            Ok(port) => Some(SocketAddr::from(([127, 0, 0, 1], port))),
            Err(_) => address.to_socket_addrs().ok().and_then(|mut addresses| addresses.next()),
        };
        let Some(address) = parsed else {
            return Err(Error::Usage {
                message: format!("--http {address}: no address"),
                hint: format!("expected ADDRESS:PORT, such as {DEFAULT_ADDRESS}"),
            });
        };
        if token.is_none() && !address.ip().is_loopback() {
            return Err(Error::Usage {
                message: format!("--http {address} can be reached from other machines"),
                hint: "give a secret with --token-file FILE, or a loopback address".to_owned(),
            });
        }
        Ok(Door { address, token })
    }

    fn config(&self) -> StreamableHttpServerConfig {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MOST_BYTES)
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
            .enforce_origin_validation();
        match self.address.ip() {
            // A machine has names that it does not know of; the token is asked of everybody.
            ip if ip.is_unspecified() => config.disable_allowed_hosts(),
            ip => {
                config.with_allowed_hosts(["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), host(ip)])
            }
        }
    }
}

fn host(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The token in a file that only its owner can read.
fn read_token(path: &Path) -> Result<Arc<str>, Error> {
    let failed = |error| Error::File { path: path.to_owned(), error };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Error::Usage {
                message: format!("other users may read the token file {} (mode {:o})", path.display(), mode & 0o777),
                hint: format!("run `chmod 600 {}`", path.display()),
            });
        }
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let token = text.trim();
    let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() < SHORTEST_TOKEN || !visible {
        return Err(Error::Usage {
            message: format!("the token file {} holds no token", path.display()),
            hint: format!("expected one line of at least {SHORTEST_TOKEN} ASCII characters without blanks"),
        });
    }
    Ok(token.into())
}

/// Serves until the process ends.
pub(crate) async fn serve(door: Door, server: Server, say: &(dyn Fn(&str) + Sync)) -> Result<(), Error> {
    let failed = |error| Error::Io { what: "listen", error };
    let listener = TcpListener::bind(door.address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    say(&format!("serving http://{address}{PATH}"));
    let factory = move || Ok(server.clone());
    let service: Service = StreamableHttpService::new(factory, Arc::default(), door.config());
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (service, token) = (service.clone(), door.token.clone());
        tokio::spawn(async move {
            let _place = place;
            let answer = service_fn(move |request| answer(service.clone(), token.clone(), request));
            let mut connection = hyper::server::conn::http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME);
            // A client that breaks off is no error of the server.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(service: Service, token: Option<Arc<str>>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if let Some(token) = token
        && !knows(request.headers().get(AUTHORIZATION), &token)
    {
        let mut refused = plain(StatusCode::UNAUTHORIZED, "the token is missing or wrong: send Authorization: Bearer");
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Ok(refused);
    }
    if request.uri().path() != PATH {
        return Ok(plain(StatusCode::NOT_FOUND, "the protocol is served at /mcp"));
    }
    Ok(service.handle(request).await)
}

/// Compares hashes of the two, so that the time tells nothing.
fn knows(given: Option<&HeaderValue>, token: &str) -> bool {
    let given = given.and_then(|given| given.to_str().ok()).and_then(|given| {
        let (scheme, token) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    given.is_some_and(|given| blake3::hash(given.as_bytes()) == blake3::hash(token.as_bytes()))
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
