//! Several servers and a shell at once on one database.

use super::client::{Session, program};
use serde_json::json;
use std::collections::BTreeSet;
use std::thread;

#[test]
fn servers_and_a_shell_write_one_database_and_lose_nothing() {
    const SERVERS: usize = 3;
    const EVENTS: usize = 15;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    Session::begin(&path, &[]).end();
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    thread::scope(|scope| {
        let path = &path;
        let servers: Vec<_> = (0..SERVERS)
            .map(|server| {
                scope.spawn(move || {
                    let mut session = Session::begin(path, &[]);
                    let mut keys = Vec::new();
                    for event in 0..EVENTS {
                        let text = format!("event {event} of server {server}");
                        keys.push(session.record(json!({"text": text, "source": "user", "episode": "all"})));
                        assert!(session.done("recall", json!({"query": text}))["found"].as_u64() > Some(0));
                    }
                    // One of them ends as a crash does.
                    if server == 0 {
                        session.kill();
                    } else {
                        assert_eq!(session.end().0, 0);
                    }
                    keys
                })
            })
            .collect();
        let shell = scope.spawn(move || {
            for event in 0..EVENTS {
                let statement =
                    format!("record turn 'event {event} of the shell' in episode 'all' with key = 's{event}'");
                let output = program(path, &["query", "m.holo", &statement]).output().unwrap();
                assert!(output.status.success(), "{output:?}");
            }
        });
        for server in servers {
            acknowledged.extend(server.join().unwrap());
        }
        shell.join().unwrap();
    });
    acknowledged.extend((0..EVENTS).map(|event| format!("s{event}")));
    assert_eq!(acknowledged.len(), (SERVERS + 1) * EVENTS);
    let mut session = Session::begin(&path, &[]);
    let listed = session.done("query", json!({"statement": "find traces in episode 'all' return key"}));
    let stored: BTreeSet<String> =
        listed["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(stored, acknowledged);
    session.end();
    let verified = program(&path, &["verify", "m.holo"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}
