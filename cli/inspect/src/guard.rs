//! The right to ask: the page of this run has it, on this machine.
//!
//! The address of the page has a random token in its fragment, which browsers do not send. The page exchanges it for a
//! cookie that scripts cannot read (`POST /session`). Every other request needs the cookie. `Host` must be the address
//! that the server listens on, and `Origin`, where there is one, the same: a page of another site can neither ask nor
//! rebind a name to this machine.

use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Bytes of a token.
const TOKEN_BYTES: usize = 24;
/// The name of the cookie.
const COOKIE_NAME: &str = "holotype-inspect";

/// The secrets and addresses of one run.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    token: String,
    cookie: String,
    hosts: [String; 2],
}

impl Guard {
    /// A guard for a server on this port, with a token of the caller or a random one.
    ///
    /// # Errors
    /// [`std::io::Error`] if the system gives no random bytes.
    pub(crate) fn new(port: u16, token: Option<String>) -> std::io::Result<Guard> {
        let token = match token {
            Some(token) => token,
            None => random()?,
        };
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        Ok(Guard { token, cookie: random()?, hosts })
    }

    /// The secret part of the page's address.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Refuses requests for another host or from another origin.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.hosts.iter().any(|known| known == host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, "this server answers at 127.0.0.1 and localhost only"));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        let is_own = |host: &String| origin.to_str().is_ok_and(|origin| origin == format!("http://{host}"));
        match self.hosts.iter().any(is_own) {
            true => Ok(()),
            false => Err((StatusCode::FORBIDDEN, "requests of other pages are refused")),
        }
    }

    /// Refuses requests without the cookie.
    pub(crate) fn check_cookie(&self, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
        let wanted = format!("{COOKIE_NAME}={}", self.cookie);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).map(str::trim);
        match pairs.any(|pair| is_equal(pair, &wanted)) {
            true => Ok(()),
            false => Err((StatusCode::UNAUTHORIZED, "open the address that `holotype inspect` printed")),
        }
    }

    /// The `Set-Cookie` header for the right token.
    pub(crate) fn exchange(&self, token: &str) -> Option<String> {
        is_equal(token, &self.token)
            .then(|| format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie))
    }
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_equal(left: &str, right: &str) -> bool {
    left.len() == right.len() && left.bytes().zip(right.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn random() -> std::io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
