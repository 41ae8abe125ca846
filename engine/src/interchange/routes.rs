//! Labelled routes as training data of a router (TierMem D.2, D.7): one JSON object for each routed recall that has a
//! label, oldest first.
//!
//! ```text
//! {"route":"~12.1","receipt":"rc-1","question":"…","summaries":["…"],"signals":{"terms":0.5,...},
//!  "decided":"escalate","c_s":false,"c_r":true,"y":"R","reward":{"S":-1.5,"R":0.9},"rewarded":0.9}
//! ```
//!
//! `question` and `summaries`, what a model as a router reads (Figure 9), are those of the receipt; they are absent
//! without one. A summary that was forgotten or retired since is not written, nor is the question of a receipt that was
//! forgotten.
//!
//! `y` is the oracle's path, S where the first tier suffices, else R where raw pages do; it is absent where both fail,
//! which says nothing about routing. `reward` is that of either path, `rewarded` that of the decision. `holotype judge
//! fit` reads these lines.

use super::export::ExportReport;
use crate::model::item::{ItemId, Layer};
use crate::router::{Action, Reward, Signals};
use crate::write::receipt;
use crate::{Error, Result, Snapshot};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Writes the labelled routes.
///
/// # Errors
/// Errors of reading the log; [`Error::File`] when writing fails.
pub fn export_routes(snapshot: &Snapshot, out: &mut impl Write) -> Result<ExportReport> {
    let mut report = ExportReport::default();
    let reward = Reward::default();
    for route in snapshot.routes()? {
        let Some((summaries_suffice, raw_suffices)) = route.label else { continue };
        let of = |action| reward.of(Some(action), summaries_suffice, raw_suffices);
        let values = Signals::NAMES.iter().zip(route.signals.values());
        let signals: Map<String, Value> = values.map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        let mut line = Map::new();
        line.insert("route".into(), route.key.into());
        if let Some(receipt) = &route.receipt {
            line.insert("receipt".into(), receipt.as_str().into());
            let (question, summaries) = asked(snapshot, receipt)?;
            line.extend(question.map(|question| ("question".to_owned(), question.into())));
            line.insert("summaries".into(), summaries.into());
        }
        line.insert("signals".into(), signals.into());
        line.insert("decided".into(), route.decided.as_str().into());
        line.insert("c_s".into(), summaries_suffice.into());
        line.insert("c_r".into(), raw_suffices.into());
        let path = if summaries_suffice { Some("S") } else { raw_suffices.then_some("R") };
        line.extend(path.map(|path| ("y".to_owned(), path.into())));
        line.insert("reward".into(), json!({"S": of(Action::Answer), "R": of(Action::Escalate)}));
        line.insert("rewarded".into(), of(route.decided).into());
        let failed = |source| Error::File { path: PathBuf::from("the export"), source };
        writeln!(out, "{}", Value::Object(line)).map_err(failed)?;
        report.lines += 1;
    }
    Ok(report)
}

/// The question of a receipt, and the texts of its summaries that are still there.
fn asked(snapshot: &Snapshot, receipt: &str) -> Result<(Option<String>, Vec<String>)> {
    let receipt = match receipt::find(snapshot, receipt) {
        Err(Error::Missing { .. }) => return Ok((None, Vec::new())),
        found => found?,
    };
    let mut summaries = Vec::new();
    for item in receipt.rows.iter().map(|row| ItemId(row.item)) {
        let attributes = snapshot.state.attributes(item)?;
        if attributes.layer() != Layer::Trace && attributes.active && !attributes.redacted {
            summaries.push(snapshot.content(item)?.text().to_owned());
        }
    }
    Ok((receipt::words(&receipt)?, summaries))
}
