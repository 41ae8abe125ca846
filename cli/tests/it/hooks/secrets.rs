//! Secrets are withheld before anything is written: neither the database, the spool nor the log holds a byte of one.

use crate::hooks::{hook, project, recorded};
use std::path::Path;

/// A planted secret of each class: the class, the text around it with SECRET in it, and its two halves, joined here so
/// that no scanner takes this file for a leak.
const PLANTED: [(&str, &str, [&str; 2]); 16] = [
    ("anthropic-key", "use SECRET now", ["sk-ant-", "api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OQ"]),
    ("openai-key", "OPENAI: SECRET", ["sk-proj-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4"]),
    ("aws-access-key", "id SECRET", ["AKIA", "Q3EGRZXAMPLE7KEY"]),
    ("github-token", "git clone https://x:SECRET/", ["ghp_", "0123456789abcdefghijklmnopqrstuvwxyz"]),
    ("gitlab-token", "SECRET", ["glpat-", "Ab1Cd2Ef3Gh4Ij5Kl6Mn"]),
    ("slack-token", "SECRET", ["xoxb-", "123456789012-abcdefABCDEF"]),
    ("google-api-key", "key SECRET", ["AIza", "SyA1234567890abcdefghijklmnopqrstuv"]),
    ("stripe-key", "SECRET", ["sk_live_", "51H8abcdefGHIJKLmnop"]),
    ("sendgrid-key", "SECRET", ["SG.", "abcdefghijklmnop1234.ABCDEFGHIJKLMNOP5678"]),
    ("npm-token", "SECRET", ["npm_", "abcdefghijklmnopqrstuvwxyz0123456789"]),
    ("huggingface-token", "SECRET", ["hf_", "abcdefghijklmnopqrstuvwxyzABCDEFGH"]),
    ("jwt", "cookie SECRET", ["eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl"]),
    ("url-password", "postgres://app:SECRET@db/x", ["hor5e-", "Battery-9"]),
    ("password", "password = SECRET", ["correct", "Horse9Battery"]),
    ("assignment", "DEPLOY_TOKEN=SECRET", ["q7Zk2mX9", "pL4vT8wB3n"]),
    ("private-key", "SECRET", ["-----BEGIN RSA PRIVATE KEY-----\n", "MIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"]),
];

fn holds(folder: &Path, secret: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => holds(&path, secret),
            false => std::fs::read(&path).unwrap().windows(secret.len()).any(|window| window == secret),
        }
    })
}

#[test]
fn a_planted_secret_of_each_class_is_withheld_everywhere() {
    let place = project();
    for (number, (class, around, halves)) in PLANTED.iter().enumerate() {
        let text = around.replace("SECRET", &halves.concat());
        let prompt = serde_json::json!({"session": "s", "event": "prompt", "prompt": text});
        hook(&place, "generic", &prompt.to_string());
        let call = serde_json::json!({
            "session": "s", "event": "tool", "tool_name": "Bash", "call_id": format!("c{number}"),
            "tool_input": {"command": text}, "tool_response": {"stdout": text},
        });
        hook(&place, "generic", &call.to_string());
        let all = recorded(&place);
        let said = all[number * 2]["text"].as_str().unwrap();
        assert!(said.contains(&format!("‹withheld:{class}:")), "{class}: {said}");
        let secret = halves[1].lines().next().unwrap();
        assert!(!holds(&place.path(".holotype"), secret.as_bytes()), "{class}");
    }
}

#[test]
fn a_call_about_an_ignored_file_is_not_recorded() {
    let place = project();
    place.write(".holotypeignore", "*.pem\n/private/\n");
    for (number, path) in ["a.pem", "private/notes.txt", "src/main.rs"].iter().enumerate() {
        let call = serde_json::json!({
            "session": "s", "event": "tool", "tool_name": "Read", "call_id": format!("c{number}"), "cwd": "PLACE",
            "tool_input": {"file_path": path}, "tool_response": "content",
        });
        hook(&place, "generic", &call.to_string());
    }
    let keys: Vec<_> = recorded(&place).iter().map(|row| row["key"].clone()).collect();
    assert_eq!(keys, ["s/c2"]);
    assert!(String::from_utf8(place.read(".holotype/hook.log")).unwrap().contains("1 ignored"));
}
