//! `holotype check-proof`: whether a proof holds, from the proof and the signer's public key alone.

use crate::failure::{Failure, Status};
use crate::render::text::printable;
use crate::render::{self, Format};
use crate::screen::{Ink, Screen};
use crate::{script, signing};
use holotype::hex;
use holotype::plural::counted;
use holotype::proof::{Checked, Growth, Proof, Rejected, TreeHead, VerifierKey, check, check_growth};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The proof: the output of `holotype prove`
    proof: PathBuf,
    /// The signer's public key, or a file that holds it
    #[arg(long, value_name = "KEY")]
    key: String,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let key = signing::verifier(&args.key)?;
    let text = script::read_file(&args.proof)?;
    let screen = Screen::stdout();
    let (json, mut told, status) = match examine(&text, &key) {
        Ok((json, lines)) => (json, lines.iter().map(|line| printable(line)).collect(), Status::Done),
        Err(rejected) => {
            let json = json!({"holds": false, "why": rejected.to_string()});
            (json, vec![screen.paint(Ink::Bad, &rejected.to_string())], Status::Found)
        }
    };
    if status == Status::Done {
        told.push(screen.paint(Ink::Good, "the proof holds"));
    }
    render::write_painted(&mut io::stdout().lock(), &json, &told.join("\n"), format)?;
    Ok(status)
}

/// Checks a proof of either sort; gives what it shows as JSON and as lines of text.
fn examine(text: &str, key: &VerifierKey) -> Result<(Value, Vec<String>), Rejected> {
    if let Ok(growth) = Growth::from_json(text) {
        let (old, new) = check_growth(&growth, key)?;
        let json = json!({"holds": true, "old": json_of_tree(&old), "new": json_of_tree(&new)});
        let line =
            format!("the log {} of {} begins with that of {}", new.origin, counted(new.size, "records"), old.size);
        return Ok((json, vec![line]));
    }
    let checked = check(&Proof::from_json(text)?, key)?;
    Ok((json_of(&checked), lines_of(&checked)))
}

fn lines_of(checked: &Checked) -> Vec<String> {
    let tree = &checked.tree;
    let mut lines =
        vec![format!("log   {} of {}, root {}", tree.origin, counted(tree.size, "records"), hex(&tree.root))];
    match &checked.content {
        None => lines.push(format!(
            "item  {}, redacted: the proof shows that it exists, and nothing of its content",
            checked.item
        )),
        Some(content) => {
            let key = content.key.as_ref().map_or_else(String::new, |key| format!(" '{key}'"));
            let left = if content.redacted { ", forgotten: only this is left of it" } else { "" };
            lines.push(format!("item  {}{key}, a {}{left}", checked.item, content.kind));
            lines.extend(content.fields.iter().map(|(name, text)| format!("      {name}: {text}")));
        }
    }
    for citation in &checked.citations {
        let place = match citation.field.as_str() {
            "" => format!("page '{}'", citation.target),
            field => format!("{}.{field}[{}..{}]", citation.target, citation.start, citation.end),
        };
        let text = citation.text.as_ref().map_or_else(String::new, |text| format!("  {text}"));
        lines.push(format!("cites {place}  {}{text}", citation.verdict));
    }
    lines
}

fn json_of(checked: &Checked) -> Value {
    let citation = |citation: &holotype::proof::CheckedCitation| {
        json!({
            "target": citation.target, "field": citation.field, "start": citation.start, "end": citation.end,
            "verdict": citation.verdict.as_str(), "text": citation.text,
        })
    };
    let content = checked.content.as_ref().map(|content| {
        let fields: serde_json::Map<String, Value> =
            content.fields.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        json!({
            "key": content.key, "kind": content.kind.as_str(), "time_us": content.time, "tool": content.tool,
            "fields": fields, "redacted": content.redacted,
        })
    });
    json!({
        "holds": true,
        "tree": json_of_tree(&checked.tree),
        "item": checked.item.0,
        "content": content,
        "cites": checked.citations.iter().map(citation).collect::<Vec<_>>(),
    })
}

fn json_of_tree(tree: &TreeHead) -> Value {
    json!({"origin": tree.origin, "size": tree.size, "root": hex(&tree.root)})
}
