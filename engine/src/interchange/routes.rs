//! Labelled routes as training data of a router (TierMem D.2, D.7): one JSON object for each routed recall that has a
//! label, oldest first.
//!
//! ```text
//! {"route":"~12.1","receipt":"rc-1","signals":{"terms":0.5,...},"decided":"escalate","c_s":false,"c_r":true,
//!  "y":"R","reward":{"S":-1.5,"R":0.9},"rewarded":0.9}
//! ```
//!
//! `y` is the oracle's path, S where the first tier suffices, else R where raw pages do; it is absent where both fail,
//! which says nothing about routing. `reward` is that of either path, `rewarded` that of the decision. No text is
//! written. `holotype judge fit` reads these lines.

use super::export::ExportReport;
use crate::router::{Action, Reward, Signals};
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
        line.extend(route.receipt.map(|receipt| ("receipt".to_owned(), receipt.into())));
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
