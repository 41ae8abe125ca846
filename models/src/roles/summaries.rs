//! Deferred summaries (TierMem B.3): the pages that are due, each summarised by a call of its own.
//!
//! A summary and the mark of its page are one commit of the engine, so a page whose call failed, or whose process was
//! killed in between, is due again.

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::Members;
use holotype::embed::Embedder;
use holotype::{Durability, EpisodeChange, Holotype, Kind, NewRecall, Pointer, Result, Verdict};
use serde_json::json;

/// The outcome of summarising what is due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summaries {
    /// Keys of the pages that have a summary now.
    pub written: Vec<String>,
    /// Keys of the pages that are still due, each with the reason.
    pub failed: Vec<(String, String)>,
}

impl Model {
    /// The summary of the text of a page.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply of another form.
    pub fn summary(&self, page: &str) -> std::result::Result<String, Failure> {
        summary(&self.ask(Role::Summariser, &json!({"page": page}))?)
    }

    /// Summarises pages that are due, at most so many, the oldest first. The open page of an episode that is closed or
    /// dead is closed before; a dead episode is closed with it, and a later trace is recorded in it all the same. Each
    /// summary is a commit of its own, and the writer's lock is free while the model is asked.
    ///
    /// # Errors
    /// Those of the database. What a model does wrong is in [`Summaries::failed`].
    pub fn summarise(
        &self,
        database: &Holotype,
        embedder: Option<&dyn Embedder>,
        durability: Durability,
        most: usize,
    ) -> Result<Summaries> {
        let mut done = Summaries::default();
        for key in self.due(database, durability)?.into_iter().take(most) {
            let page = database.snapshot().page(&key)?;
            // Bytes that are not those that were written are no ground for a summary.
            if page.verdict != Verdict::Ok {
                done.failed.push((key, format!("its text is {}", page.verdict)));
                continue;
            }
            let summary = self.summary(&page.text).map_err(holotype::Error::from);
            let embedded = summary.and_then(|text| {
                let vector = embedder.map(|embedder| embedder.embed_passages(&[&text])).transpose()?;
                let vector = vector.and_then(|mut vectors| vectors.pop()).flatten();
                Ok((text, vector))
            });
            match embedded {
                Ok((text, vector)) => {
                    let mut recall = NewRecall::new(Kind::Summary, text).from(Pointer::to_page(&key));
                    if let Some(vector) = vector {
                        recall = recall.vector(vector);
                    }
                    let mut transaction = database.begin()?;
                    self.prompts().record(&mut transaction, &[Role::Summariser])?;
                    transaction.remember(recall)?;
                    transaction.commit(durability)?;
                    done.written.push(key);
                }
                Err(error) => done.failed.push((key, error.to_string())),
            }
        }
        Ok(done)
    }

    /// The keys of the pages that are due, the oldest first; open pages of episodes that ended are closed before.
    pub(super) fn due(&self, database: &Holotype, durability: Durability) -> Result<Vec<String>> {
        let mut due = database.snapshot().pages_due()?;
        let open: Vec<String> = due.iter().filter(|page| page.key.is_none()).map(|page| page.episode.clone()).collect();
        if !open.is_empty() {
            let mut transaction = database.begin()?;
            for episode in open {
                transaction.episode(&episode, EpisodeChange { open: Some(false), ..EpisodeChange::default() })?;
            }
            transaction.commit(durability)?;
            due = database.snapshot().pages_due()?;
        }
        Ok(due.into_iter().filter_map(|page| page.key).collect())
    }
}

/// The summary of a reply.
fn summary(reply: &str) -> std::result::Result<String, Failure> {
    let mut members = Members::of(reply)?;
    let summary = members.stated("summary")?;
    members.end()?;
    Ok(summary)
}
