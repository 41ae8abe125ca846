//! The trajectories of controllers as training data (HELM 3.3, Stage 2): one JSON object for each decision, by episode,
//! oldest first.
//!
//! ```text
//! {"episode":"trip-42","step":3,"request":"price of UA123","observation":"…","novelty":0.5,"last_read":1,
//!  "consolidations_left":5,"items":[4,0,0],"operations":["READ","WRITE"],"done":["READ","WRITE"],"refused":[],
//!  "failed":false,"tokens":31,"redundant":false,"risky":true,"r_mem":-1.0207}
//! ```
//!
//! `r_mem` is the memory's part of the reward `R = alpha r_task + beta r_mem` (eq. 2; Table 11: 1 and 0.05). The paper
//! says what it rewards and gives no formula; ours is
//!
//! ```text
//! r_mem = - tokens / 1500 - redundant - risky
//! ```
//!
//! *redundant*: an observation was written of which less than a tenth of the words was new. *risky*: what was read
//! holds a row that was stale, failed or contradicted for its reader. `r_task` is the caller's, who knows the outcome.
//!
//! `request` and `observation` are read from the receipt and the trace that the decision names; what was forgotten is
//! absent.

use super::export::ExportReport;
use crate::agent::cited::RECALL_TOKENS;
use crate::agent::controller::Operation;
use crate::statements::audit::is_risky;
use crate::write::receipt;
use crate::{Error, Result, Snapshot};
use std::io::Write;
use std::path::PathBuf;

/// The share of new words below which a write is redundant.
const NOVEL: f64 = 0.1;

/// Writes the decisions of all loops.
///
/// # Errors
/// Errors of reading the log; [`Error::File`] when writing fails.
pub fn export_decisions(snapshot: &Snapshot, out: &mut impl Write) -> Result<ExportReport> {
    let mut decided = snapshot.all_decisions()?;
    decided.sort_by(|a, b| a.episode.cmp(&b.episode));
    let mut report = ExportReport::default();
    for decision in decided {
        let (mut request, mut risky) = (None, false);
        if let Some(id) = &decision.receipt {
            match receipt::find(snapshot, id) {
                Ok(record) => {
                    request = receipt::words(&record)?;
                    risky = is_risky(snapshot, &record)?;
                }
                Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut observation = None;
        if let Some(trace) = decision.written.filter(|trace| trace.0 < snapshot.len())
            && !snapshot.state.attributes(trace)?.redacted
        {
            observation = Some(snapshot.content(trace)?.text().to_owned());
        }
        let redundant = decision.done.contains(&Operation::Write) && decision.novelty < NOVEL;
        let cost = decision.tokens as f64 / RECALL_TOKENS as f64;
        let r_mem = -cost - f64::from(u8::from(redundant)) - f64::from(u8::from(risky));
        let mut line = decision.to_json();
        if let Some(object) = line.as_object_mut() {
            let episode = object.remove("loop").unwrap_or_default();
            object.insert("episode".into(), episode);
            object.extend(request.map(|request| ("request".to_owned(), request.into())));
            object.extend(observation.map(|observation| ("observation".to_owned(), observation.into())));
            object.insert("redundant".into(), redundant.into());
            object.insert("risky".into(), risky.into());
            object.insert("r_mem".into(), ((r_mem * 1e6).round() / 1e6).into());
        }
        let failed = |source| Error::File { path: PathBuf::from("the export"), source };
        writeln!(out, "{line}").map_err(failed)?;
        report.lines += 1;
    }
    Ok(report)
}
