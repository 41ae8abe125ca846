//! The server of `holotype inspect`: the page and its JSON, on this machine only.
//!
//! | path | answer |
//! |---|---|
//! | `/`, `/style.css`, `/….js` | the page |
//! | `POST /session` | a cookie for the token |
//! | `/api/overview`, `/api/items`, `/api/facets`, `/api/why/KEY` | the views (`views`) |
//! | `/api/diff`, `/api/events`, `/api/health`, `/api/receipts` | more of them |
//! | `POST /api/recall`, `POST /api/why` | a recall with its steps; why an item is in its answer or not |
//! | `/api/rights` | whether the page may change the memory |
//! | `POST /api/replay` | the answer of a receipt, found again |
//! | `POST /api/change`, `POST /api/receipt` | a mark or a retraction; a recall with a receipt; where allowed |
//!
//! Each request reads a snapshot of the newest commit on a thread that may block; the network has one thread.

use crate::change::{change, keep_receipt};
use crate::guard::Guard;
use crate::health::health;
use crate::lists::Lists;
use crate::page;
use crate::views::{self, Query};
use crate::{Error, Result};
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, body::Body};
use holotype::{Holotype, Snapshot};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// The policy of pages: they load from this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The largest body of a request, in bytes.
const MAX_BODY: usize = 1 << 20;

/// A server that has an address and does not answer yet.
#[derive(Debug)]
pub struct Inspector {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<Shared>,
}

/// A server that answers, for tests and notebooks; it stops with the process.
#[derive(Debug, Clone)]
pub struct Running {
    /// The address of the page, with its token.
    pub url: String,
}

#[derive(Debug)]
struct Shared {
    database: Holotype,
    guard: Guard,
    lists: Lists,
    /// True if the page may change the memory.
    can_write: bool,
}

impl Inspector {
    /// Listens on a port of this machine; 0 takes a free one. Without a token a random one is made.
    ///
    /// # Errors
    /// [`Error::Io`] if the port is taken.
    pub fn new(database: Holotype, port: u16, token: Option<String>) -> Result<Inspector> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let guard = Guard::new(address.port(), token)?;
        let state = Shared { database, guard, lists: Lists::default(), can_write: false };
        Ok(Inspector { listener, address, state: Arc::new(state) })
    }

    /// Lets the page mark and retract items, and keep receipts. The database has to be open for writing.
    pub fn allow_write(mut self) -> Inspector {
        if let Some(state) = Arc::get_mut(&mut self.state) {
            state.can_write = true;
        }
        self
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.state.guard.token())
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// [`Error::Io`] if the listener fails.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            axum::serve(listener, router(self.state)).await
        })?;
        Ok(())
    }

    /// Answers on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if the thread cannot start.
    pub fn spawn(self) -> Result<Running> {
        let running = Running { url: self.url() };
        std::thread::Builder::new().name("inspect".to_owned()).spawn(move || self.run())?;
        Ok(running)
    }
}

fn router(state: Arc<Shared>) -> Router {
    let api = Router::new()
        .route("/api/overview", get(|shared, uri| read(shared, uri, views::overview)))
        .route("/api/rights", get(rights))
        .route("/api/items", get(items))
        .route("/api/facets", get(|shared, uri| read(shared, uri, views::facets)))
        .route("/api/why/{key}", get(why))
        .route("/api/diff", get(|shared, uri| read(shared, uri, views::diff)))
        .route("/api/events", get(|shared, uri| read(shared, uri, views::events)))
        .route("/api/receipts", get(|shared, uri| read(shared, uri, views::receipts)))
        .route("/api/health", get(checked))
        .route("/api/replay", post(|shared, body| ask(shared, body, views::replay)))
        .route("/api/change", post(|shared, body| write(shared, body, change)))
        .route("/api/receipt", post(|shared, body| write(shared, body, keep_receipt)))
        .route("/api/recall", post(|shared, body| ask(shared, body, views::recall)))
        .route("/api/why", post(|shared, body| ask(shared, body, views::why)))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), need_cookie));
    Router::new()
        .route("/", get(|| async { html(page::served()) }))
        .route("/session", post(session))
        .merge(api)
        .fallback(get(asset))
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), need_origin))
        .with_state(state)
}

async fn need_origin(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match shared.guard.check_origin(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, why)) => refused(status, why),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn need_cookie(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match shared.guard.check_cookie(request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, why)) => refused(status, why),
    }
}

async fn session(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    match shared.guard.exchange(&String::from_utf8_lossy(&body)) {
        Some(cookie) => (StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response(),
        None => refused(StatusCode::UNAUTHORIZED, "the token is not that of this run"),
    }
}

async fn asset(uri: Uri) -> Response {
    match page::file(uri.path().trim_start_matches('/')) {
        Some(file) => ([(CONTENT_TYPE, file.kind)], file.text).into_response(),
        None => refused(StatusCode::NOT_FOUND, "there is no such page"),
    }
}

async fn items(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let lists = Arc::clone(&shared);
    on_snapshot(shared, move |snapshot| {
        views::items(&snapshot, &Query::new(uri.query().unwrap_or_default()), &lists.lists)
    })
    .await
}

async fn rights(State(shared): State<Arc<Shared>>) -> Response {
    json_of(StatusCode::OK, &json!({ "can_write": shared.can_write }))
}

async fn checked(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let of = Arc::clone(&shared);
    on_snapshot(shared, move |snapshot| health(&of.database, &snapshot, &Query::new(uri.query().unwrap_or_default())))
        .await
}

async fn why(State(shared): State<Arc<Shared>>, Path(key): Path<String>, uri: Uri) -> Response {
    let query = Query::new(uri.query().unwrap_or_default());
    on_snapshot(shared, move |snapshot| views::story(&snapshot, &key, &query)).await
}

async fn read(State(shared): State<Arc<Shared>>, uri: Uri, view: fn(&Snapshot, &Query) -> Result<Value>) -> Response {
    let query = Query::new(uri.query().unwrap_or_default());
    on_snapshot(shared, move |snapshot| view(&snapshot, &query)).await
}

async fn ask(State(shared): State<Arc<Shared>>, body: Bytes, view: fn(&Snapshot, &Value) -> Result<Value>) -> Response {
    on_snapshot(shared, move |snapshot| {
        let asked = serde_json::from_slice(&body).map_err(|error| Error::Invalid(format!("the body: {error}")))?;
        view(&snapshot, &asked)
    })
    .await
}

/// Runs a change of the memory, if they are allowed.
async fn write(
    State(shared): State<Arc<Shared>>,
    body: Bytes,
    change: fn(&Holotype, &Value) -> Result<Value>,
) -> Response {
    if !shared.can_write {
        return refused(StatusCode::FORBIDDEN, "this page reads: start `holotype inspect` with --allow-write");
    }
    let of = Arc::clone(&shared);
    on_snapshot(shared, move |_| {
        let asked = serde_json::from_slice(&body).map_err(|error| Error::Invalid(format!("the body: {error}")))?;
        change(&of.database, &asked)
    })
    .await
}

/// Runs a view on the newest commit.
async fn on_snapshot(shared: Arc<Shared>, view: impl FnOnce(Snapshot) -> Result<Value> + Send + 'static) -> Response {
    let answer = tokio::task::spawn_blocking(move || {
        shared.database.refresh()?;
        view(shared.database.snapshot())
    });
    match answer.await {
        Ok(Ok(value)) => json_of(StatusCode::OK, &value),
        Ok(Err(error)) => json_of(StatusCode::BAD_REQUEST, &json!({ "error": error.to_string() })),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the view failed"),
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    json_of(status, &json!({ "error": why }))
}

fn json_of(status: StatusCode, value: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json; charset=utf-8")], Body::from(value.to_string())).into_response()
}

fn html(document: String) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], document).into_response()
}
