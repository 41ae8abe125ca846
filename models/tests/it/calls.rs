//! Calls that go wrong on the way: busy, stalled, oversized, cut off and garbled answers.

use crate::server::{Act, Server, limits};
use holotype_models::{CallLimits, Client, Endpoint, Failure};
use serde_json::json;
use std::time::Duration;

fn ask(server: &Server, limits: CallLimits) -> (Result<String, Failure>, Vec<u128>) {
    let (client, clock) = server.client(limits);
    (client.chat("be brief", "hello"), clock.waits())
}

#[test]
fn a_request_is_what_the_interface_asks_for() {
    let server = Server::always("hi");
    let endpoint = server.endpoint().key("sk-1").unwrap();
    assert_eq!(Client::new(endpoint).unwrap().chat("be brief", "hello").unwrap(), "hi");
    let request = server.requests().remove(0);
    assert_eq!(request.path, "/v1/chat/completions");
    assert!(request.head.to_lowercase().contains("authorization: bearer sk-1\r\n"), "{}", request.head);
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let expected = json!({
        "model": "fake", "messages": [message("system", "be brief"), message("user", "hello")],
        "temperature": 0, "max_tokens": 2048, "stream": false,
    });
    assert_eq!(request.body, expected);
}

#[test]
fn servers_that_take_other_members_get_them() {
    let server = Server::always("hi");
    let endpoint = server.endpoint().parameter("max_tokens", json!(null)).unwrap();
    let endpoint = endpoint.parameter("max_completion_tokens", json!(50)).unwrap().parameter("temperature", json!(1));
    Client::new(endpoint.unwrap()).unwrap().chat("", "").unwrap();
    let body = server.requests().remove(0).body;
    assert_eq!(
        (body.get("max_tokens"), &body["max_completion_tokens"], &body["temperature"]),
        (None, &json!(50), &json!(1))
    );
    for name in ["model", "messages", "stream", "n"] {
        assert!(server.endpoint().parameter(name, json!(1)).is_err(), "{name}");
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    let busy = |status, after: &str| Act::Answer(status, vec![("Retry-After", after.to_owned())], "busy".to_owned());
    let server = Server::script(vec![busy(429, "7"), busy(503, "2"), Act::says("hi")]);
    let (reply, waits) = ask(&server, limits());
    assert_eq!((reply.unwrap(), waits), ("hi".to_owned(), vec![7000, 2000]));
    let date = "Wed, 21 Oct 2015 07:28:00 GMT".to_owned();
    let until = "Wed, 21 Oct 2015 07:28:09 GMT".to_owned();
    let moment = Act::Answer(503, vec![("Date", date), ("Retry-After", until)], String::new());
    let server = Server::script(vec![moment, Act::says("hi")]);
    assert_eq!(ask(&server, limits()).1, [9000]);
    // Without a word of the server the waits double.
    let server = Server::script(vec![Act::status(500), Act::status(502), Act::says("hi")]);
    assert_eq!(ask(&server, limits()).1, [500, 1000]);
}

#[test]
fn tries_and_total_time_end() {
    let server = Server::new(|_, _| Act::status(503));
    let (reply, waits) = ask(&server, limits());
    let error = reply.unwrap_err();
    assert!(matches!(&error, Failure::GivenUp { tries: 3, .. }), "{error}");
    assert!(error.to_string().contains("status 503"), "{error}");
    assert_eq!((waits, server.requests().len()), (vec![500, 1000], 3));
    // A wait that would not end within the total is not begun.
    let after = |seconds: &str| Act::Answer(429, vec![("Retry-After", seconds.to_owned())], String::new());
    let server = Server::script(vec![after("5"), after("5"), after("5"), Act::says("late")]);
    let total = CallLimits { total: Duration::from_secs(12), tries: 9, ..limits() };
    let (reply, waits) = ask(&server, total);
    let error = reply.unwrap_err().to_string();
    assert!(error.contains("after 3 tries") && error.contains("5.0 s") && error.contains("12.0 s"), "{error}");
    assert_eq!(waits, [5000, 5000]);
    let server = Server::script(vec![after("3600")]);
    let (reply, waits) = ask(&server, limits());
    assert!(matches!(reply, Err(Failure::GivenUp { tries: 1, .. })));
    assert!(waits.is_empty());
}

#[test]
fn a_refusal_is_not_asked_again() {
    for status in [400, 401, 404, 422, 301] {
        let body = "x".repeat(9_000);
        let location = vec![("Location", "http://127.0.0.1:1/elsewhere".to_owned())];
        let server = Server::script(vec![Act::Answer(status, location, body)]);
        let (reply, waits) = ask(&server, limits());
        let Err(Failure::Status { status: shown, message, .. }) = reply else { panic!("{status}: {reply:?}") };
        assert_eq!((shown, waits.len(), server.requests().len()), (status, 0, 1));
        assert!(message.len() < 300, "{message}");
    }
}

/// A server that repeats the header it was sent brought the key into messages and logs.
#[test]
fn the_text_of_a_refusal_holds_no_key_and_no_control_characters() {
    let body = "\u{1b}[31mno such key: Bearer sk-secret-1\u{7}\r\nask \u{202e}again".to_owned();
    let server = Server::script(vec![Act::Answer(401, Vec::new(), body)]);
    let client = Client::new(server.endpoint().key("sk-secret-1").unwrap()).unwrap();
    let message = client.chat("be brief", "hello").unwrap_err().to_string();
    assert!(!message.contains("sk-secret-1") && message.contains("no such key"), "{message}");
    assert!(!message.contains(|c: char| c.is_control() || c == '\u{202e}'), "{message:?}");
}

#[test]
fn a_stall_ends_with_the_time_of_a_try() {
    let reply = json!({"choices": []}).to_string();
    let short = CallLimits { attempt: Duration::from_millis(60), tries: 2, ..limits() };
    for stall in [|_: &str| Act::Stall, |reply: &str| Act::StallInBody(reply.to_owned())] {
        let text = reply.clone();
        let server = Server::new(move |_, _| stall(&text));
        let (reply, waits) = ask(&server, short);
        let Err(Failure::GivenUp { tries: 2, last, .. }) = reply else { panic!("{reply:?}") };
        assert!(matches!(*last, Failure::TimedOut { limit, .. } if limit == short.attempt), "{last}");
        assert_eq!(waits, [500]);
    }
    // A stall is not the end: the next try may succeed.
    let server = Server::new(|nth, _| if nth == 0 { Act::Stall } else { Act::says("hi") });
    let generous = CallLimits { attempt: Duration::from_millis(500), tries: 9, ..limits() };
    assert_eq!(ask(&server, generous).0.unwrap(), "hi");
    // The total time also bounds the try.
    let server = Server::new(|_, _| Act::Stall);
    let total = CallLimits { total: Duration::from_millis(60), ..limits() };
    let Err(Failure::GivenUp { tries: 1, last, .. }) = ask(&server, total).0 else { panic!("one try") };
    assert!(matches!(*last, Failure::TimedOut { limit, .. } if limit == total.total), "{last}");
}

#[test]
fn fifty_megabytes_are_not_read() {
    for stated in [true, false] {
        let server = Server::new(move |_, _| Act::FiftyMegabytes { stated });
        let (reply, waits) = ask(&server, limits());
        assert!(matches!(reply, Err(Failure::ResponseTooLong { limit: 65_536, .. })), "{reply:?}");
        assert_eq!((waits.len(), server.requests().len()), (0, 1));
    }
}

#[test]
fn a_broken_connection_is_tried_again() {
    let cut = r#"{"choices": [{"message": {"content": "hi"#.to_owned();
    let server = Server::script(vec![Act::HangUp, Act::CutOff(cut), Act::says("hi")]);
    let (reply, waits) = ask(&server, limits());
    assert_eq!((reply.unwrap(), waits.len()), ("hi".to_owned(), 2));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint::new(&format!("http://{closed}/v1"), "fake").unwrap();
    let once = CallLimits { tries: 1, ..limits() };
    let error = Client::with(endpoint, once).unwrap().chat("", "").unwrap_err();
    let Failure::GivenUp { last, .. } = error else { panic!("{error}") };
    assert!(matches!(*last, Failure::Connection { .. }), "{last}");
}

#[test]
fn an_answer_is_one_of_the_interface_or_refused() {
    let message = |content: serde_json::Value| json!({"message": {"content": content}});
    let ended = |reason: &str| json!({"message": {"content": "hi"}, "finish_reason": reason});
    let whole = |choices: serde_json::Value| json!({"choices": choices}).to_string();
    for (body, why) in [
        (String::new(), "is no JSON"),
        ("<html>gateway</html>".to_owned(), "is no JSON"),
        (r#"{"choices": [{"message": {"content": "hi"#.to_owned(), "is no JSON"),
        ("[]".to_owned(), "no JSON object"),
        ("\u{1}\u{0}garbage".to_owned(), "is no JSON"),
        ("[".repeat(10_000), "is no JSON"),
        ("{}".to_owned(), "no list `choices`"),
        (whole(json!([])), "0 choices"),
        (whole(json!([message(json!("a")), message(json!("b"))])), "2 choices"),
        (whole(json!([message(json!(null))])), "no text"),
        (whole(json!([message(json!(["a"]))])), "no text"),
        (whole(json!([ended("length")])), "cut off at 2048 tokens"),
        (whole(json!([ended("content_filter")])), "content_filter"),
    ] {
        let server = Server::script(vec![Act::Answer(200, Vec::new(), body.clone())]);
        let (reply, waits) = ask(&server, limits());
        let error = reply.unwrap_err();
        assert!(matches!(&error, Failure::Answer { .. }) && error.to_string().contains(why), "{body:.40}: {error}");
        assert!(waits.is_empty());
    }
}

#[test]
fn limits_of_a_request_hold_before_anything_is_sent() {
    let server = Server::always("hi");
    let (client, _) = server.client(CallLimits { request_bytes: 400, ..limits() });
    assert!(client.chat("s", "short").is_ok());
    let error = client.chat("s", &"long ".repeat(100)).unwrap_err();
    assert!(matches!(error, Failure::RequestTooLong { limit: 400, .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
    for zero in [
        CallLimits { tries: 0, ..limits() },
        CallLimits { attempt: Duration::ZERO, ..limits() },
        CallLimits { batch: 0, ..limits() },
    ] {
        assert!(matches!(Client::with(server.endpoint(), zero), Err(Failure::Invalid(_))));
    }
}
