//! `holotype import --durability sync` killed (SIGKILL) at random moments: what is left verifies, holds whole
//! transactions, and takes the same import again to the same end. How often is in the environment: `HOLOTYPE_KILLS`.
#![cfg(unix)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holotype");
const TRANSACTIONS: usize = 80;

fn run(args: &[&str], dir: &Path) -> Output {
    let output = Command::new(PROGRAM).args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Small transactions of three lines and the line that commits them.
fn transactions() -> Vec<String> {
    let of = |number: usize| {
        let mut lines = String::new();
        for part in 0..2 {
            let words = "and on ".repeat(number * 31 % 90);
            let _ = writeln!(
                lines,
                r#"{{"trace":{{"key":"t{number}-{part}","episode":"e","time":"2026-01-05T10:00:00Z","fields":{{"text":"said {number} {part} {words}"}}}}}}"#
            );
        }
        let _ = writeln!(
            lines,
            r#"{{"recall":{{"key":"r{number}","text":"fact {number}","from":[{{"key":"t{number}-1"}}]}}}}"#
        );
        let _ = writeln!(lines, r#"{{"commit":{{"number":{number},"time":"2026-01-05T10:00:00Z"}}}}"#);
        lines
    };
    (1..=TRANSACTIONS).map(of).collect()
}

/// Feeds an import through its standard input and kills it after so many transactions were handed over.
fn import_and_kill(dir: &Path, transactions: &[String], spins: u64) {
    let mut child = Command::new(PROGRAM)
        .args(["import", "killed.holo", "-", "--durability", "sync"])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = child.stdin.take().unwrap();
    for transaction in transactions {
        lines.write_all(transaction.as_bytes()).unwrap();
    }
    for _ in 0..spins {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_import_verifies_and_completes_when_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let transactions = transactions();
    std::fs::write(dir.join("lines.jsonl"), transactions.concat()).unwrap();
    run(&["create", "calm.holo"], dir);
    run(&["import", "calm.holo", "lines.jsonl"], dir);
    let wanted = run(&["export", "calm.holo", "-"], dir).stdout;
    assert!(wanted.len() > 10_000);

    let kills: u64 = std::env::var("HOLOTYPE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut disturbed = 0;
    for kill in 1..=kills {
        run(&["create", "killed.holo"], dir);
        for _ in 0..2 {
            let handed = 1 + draw(TRANSACTIONS as u64) as usize;
            import_and_kill(dir, &transactions[..handed], draw(40_000_000));
            run(&["verify", "killed.holo"], dir);
            let count = |what: &str| -> usize {
                let script = format!("count {what}");
                let output = run(&["query", "killed.holo", &script, "--format", "json"], dir);
                let text = String::from_utf8(output.stdout).unwrap();
                let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                let count = json.pointer("/results/0/rows/0/count").or_else(|| json.pointer("/rows/0/count"));
                count.and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{text}")) as usize
            };
            let (traces, recalls) = (count("traces"), count("recalls"));
            assert_eq!(traces, 2 * recalls, "kill {kill}: half a transaction");
            assert!(recalls <= TRANSACTIONS, "kill {kill}");
            disturbed += u64::from(recalls > 0 && recalls < TRANSACTIONS);
        }
        run(&["import", "killed.holo", "lines.jsonl"], dir);
        run(&["verify", "killed.holo"], dir);
        let found = run(&["export", "killed.holo", "-"], dir).stdout;
        assert!(found == wanted, "kill {kill}: another export");
        std::fs::remove_dir_all(dir.join("killed.holo")).unwrap();
    }
    assert!(disturbed > 0, "every kill came too early or too late");
}
