//! The roles around a memory in tiers (TierMem): facts of a page (Figure 6), answers (Figure 10), their judge (D.3).

use super::Model;
use crate::failure::Failure;
use crate::prompts::Role;
use crate::reply::Members;
use holotype::embed::Embedder;
use holotype::{Durability, Holotype, NewRecall, Pointer, Result, Row, Verdict, time};
use serde_json::{Map, Value, json};

/// Facts of a page that are taken, at most.
const MOST_FACTS: usize = 20;

/// A fact of a page, with the quote that says it and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFact {
    /// The fact, as a statement.
    pub fact: String,
    /// The words of the page, to the letter.
    pub quote: String,
    /// Its subject.
    pub tag: Option<String>,
}

/// An answer of a model to a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// The answer; `None` where the evidence does not say.
    pub text: Option<String>,
    /// The keys of the rows that it rests on.
    pub keys: Vec<String>,
}

/// The outcome of asking for the facts of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageFacts {
    /// Pages whose facts are written, each with their number.
    pub written: Vec<(String, u64)>,
    /// Facts that were left out and pages that are still due, each with the reason.
    pub failed: Vec<(String, String)>,
}

impl Model {
    /// True if an answer says what one of the right answers says (LLM as a judge).
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply of another form.
    pub fn judge(&self, question: &str, right: &[&str], answer: &str) -> std::result::Result<bool, Failure> {
        let inputs = json!({"question": question, "right": right, "answer": answer});
        let reply = self.ask(Role::Judge, &inputs)?;
        let mut members = Members::of(&reply)?;
        let correct = members.truth("correct")?;
        members.end()?;
        Ok(correct)
    }

    /// Answers a question from rows.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, a reply of another form, or one that names a key that was not shown.
    pub fn answer(&self, question: &str, rows: &[Row]) -> std::result::Result<Answered, Failure> {
        let evidence: Value = rows.iter().map(piece).collect();
        let reply = self.ask(Role::Answerer, &json!({"question": question, "evidence": evidence}))?;
        let mut members = Members::of(&reply)?;
        let text = members.text("answer")?;
        let mut keys = Vec::new();
        for key in members.list("keys")? {
            let known = key.as_str().filter(|key| rows.iter().any(|row| row.key == *key));
            keys.push(known.ok_or_else(|| members.refused(format!("names {key}, which was not shown")))?.to_owned());
        }
        if text.is_none() && !keys.is_empty() {
            return Err(members.refused("names keys for no answer"));
        }
        members.end()?;
        Ok(Answered { text, keys })
    }

    /// The facts of the text of a page.
    ///
    /// # Errors
    /// [`Failure`]: a call that failed, or a reply of another form.
    pub fn page_facts(&self, page: &str) -> std::result::Result<Vec<PageFact>, Failure> {
        self.read(Role::PageFacts, json!({"page": page}), |reply| {
            let mut members = Members::of(reply)?;
            let mut facts = Vec::new();
            for value in members.list("facts")? {
                let mut one = members.inner(value, "facts")?;
                let (fact, quote, tag) = (one.stated("fact")?, one.stated("quote")?, one.text("tag")?);
                one.end()?;
                facts.push(PageFact { fact, quote, tag });
            }
            members.end()?;
            facts.truncate(MOST_FACTS);
            Ok(facts)
        })
    }

    /// Writes the facts of pages that are due, the oldest first, at most so many pages: each fact a recall that cites
    /// what the page says, with its tag as the field `tag`. A fact whose quote stands nowhere is left out. Each page is
    /// a commit of its own, and counts as summarised then; the writer's lock is free while the model is asked.
    ///
    /// # Errors
    /// Those of the database. What a model does wrong is in [`PageFacts::failed`].
    pub fn extract_pages(
        &self,
        database: &Holotype,
        embedder: Option<&dyn Embedder>,
        durability: Durability,
        most: usize,
    ) -> Result<PageFacts> {
        let mut done = PageFacts::default();
        for key in self.due(database, durability)?.into_iter().take(most) {
            let page = database.snapshot().page(&key)?;
            if page.verdict != Verdict::Ok {
                done.failed.push((key, format!("its text is {}", page.verdict)));
                continue;
            }
            let facts = match self.page_facts(&page.text) {
                Ok(facts) => facts,
                Err(failure) => {
                    done.failed.push((key, failure.to_string()));
                    continue;
                }
            };
            let texts: Vec<&str> = facts.iter().map(|fact| fact.fact.as_str()).collect();
            let vectors = match embedder.map(|embedder| embedder.embed_passages(&texts)).transpose() {
                Ok(vectors) => vectors.unwrap_or_else(|| vec![None; texts.len()]),
                Err(failure) => {
                    done.failed.push((key, failure.to_string()));
                    continue;
                }
            };
            if vectors.len() != texts.len() {
                let counts = format!("{} vectors for {} facts", vectors.len(), texts.len());
                done.failed.push((key, format!("the embedder gave {counts}")));
                continue;
            }
            let mut transaction = database.begin()?;
            self.prompts().record(&mut transaction, &[Role::PageFacts])?;
            let mut written = 0;
            for (fact, vector) in facts.iter().zip(vectors) {
                let mut recall = NewRecall::fact(fact.fact.as_str()).from(Pointer::to_page(&key).quoting(&fact.quote));
                if let Some(tag) = &fact.tag {
                    recall = recall.field("tag", tag.as_str());
                }
                if let Some(vector) = vector {
                    recall = recall.vector(vector);
                }
                match transaction.remember(recall) {
                    Ok(_) => written += 1,
                    Err(error @ holotype::Error::UnresolvedPointer { .. }) => {
                        done.failed.push((key.clone(), format!("{}: {error}", fact.fact)));
                    }
                    Err(error) => return Err(error),
                }
            }
            transaction.mark_page(&key, true)?;
            transaction.commit(durability)?;
            done.written.push((key, written));
        }
        Ok(done)
    }
}

/// A row as an answerer sees it.
fn piece(row: &Row) -> Value {
    let mut piece = Map::from_iter([("key".to_owned(), json!(row.key)), ("text".to_owned(), json!(row.text))]);
    piece.extend(row.time.map(|micros| ("time".to_owned(), json!(time::format(micros)))));
    piece.extend(row.speaker.as_ref().map(|speaker| ("speaker".to_owned(), json!(speaker))));
    Value::Object(piece)
}
