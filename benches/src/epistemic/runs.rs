//! Generated runs of a changing world, and what is right at their end.
//!
//! At each step a tool looks up an attribute of a thing, fails, answers for another version, or the assistant guesses.
//! A thing's value changes with each successful look-up. The classes of `epistemic-dev` are kept: `right` is the newest
//! successful look-up of the reader's version, `stale` an earlier one, `failed`, `foreign-version`, `ungrounded`.

use super::domains::{DOMAINS, Values};
use super::phrases::{self, Fact, Style};
use crate::dataset::{Asked, Question};
use crate::random::Random;
use holotype::embed::HashingEmbedder;
use holotype::extract::{ExtractOptions, Field, extract, normalise};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Steps of a run.
const STEPS: u64 = 2_000;
/// Things of a run.
const THINGS: usize = 30;
/// Steps after which a look-up is no longer fresh.
const FRESH: u64 = 200;
/// Runs of one seed.
const RUNS: u64 = 3;
/// The first moment, 2026-01-01T00:00:00Z, and the time of a step.
const START: i64 = 1_767_225_600_000_000;
const STEP_US: i64 = 420_000_000;

/// An attribute of a thing with what was said of it.
struct Tracked {
    domain: usize,
    name: String,
    attribute: &'static str,
    values: Values,
    value: Option<String>,
    /// Key, class and step of everything said so far.
    said: Vec<(String, &'static str, u64)>,
}

/// The number of look-ups that were read as what they state, by form.
#[derive(Default)]
pub(super) struct Claims(BTreeMap<String, (usize, usize)>);

/// The runs of a seed, with the questions asked at their end.
pub(super) fn runs(style: Style, seed: u64, claims: &mut Claims) -> Vec<(String, Asked)> {
    // The seed is spread, since neighbouring states begin alike.
    let mut random = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..RUNS).map(|run| generate(style, run, &mut random, claims)).collect()
}

fn generate(style: Style, run: u64, random: &mut Random, claims: &mut Claims) -> (String, Asked) {
    let episode = format!("{}-{run}", style.as_str());
    let mut tracked = things(random);
    let mut lines = format!("{}\n", json!({"episode": {"id": episode, "task": "operations desk", "version": "v2"}}));
    for step in 0..STEPS {
        let at = random.below(tracked.len());
        let key = format!("{episode}/s{step}");
        let mut trace = tracked[at].say(style, random, claims);
        let line = trace.0.as_object_mut().into_iter();
        for line in line {
            line.insert("key".into(), json!(key));
            line.insert("episode".into(), json!(episode));
            line.insert("log_id".into(), json!(episode));
            line.insert("step".into(), json!(step));
            line.insert("time".into(), json!(holotype::time::format(START + STEP_US * step as i64)));
        }
        lines += &format!("{}\n", json!({"trace": trace.0}));
        tracked[at].note(key, trace.1, step);
    }
    let questions = tracked.iter().filter_map(|tracked| tracked.ask(random)).collect();
    (lines, Asked { episode, questions })
}

/// The attributes of some things of all kinds.
fn things(random: &mut Random) -> Vec<Tracked> {
    let mut tracked = Vec::new();
    for nth in 0..THINGS {
        let number = nth % DOMAINS.len();
        let domain = &DOMAINS[number];
        let name = domain.names.nth(nth / DOMAINS.len(), random);
        tracked.extend(domain.attributes.iter().map(|(attribute, values)| Tracked {
            domain: number,
            name: name.clone(),
            attribute,
            values: *values,
            value: None,
            said: Vec::new(),
        }));
    }
    tracked
}

impl Tracked {
    fn fact<'f>(&'f self, value: &'f str, before: Option<&'f str>) -> Fact<'f> {
        let domain = &DOMAINS[self.domain];
        Fact { kind: domain.kind, tool: domain.tool, name: &self.name, attribute: self.attribute, value, before }
    }

    /// A value that does not hold now.
    fn another(&self, random: &mut Random) -> String {
        loop {
            let value = self.values.draw(random);
            if self.value.as_ref() != Some(&value) {
                return value;
            }
        }
    }

    /// One trace about it: a look-up, a failed one, one of another version, or a guess. Gives its class, too.
    fn say(&mut self, style: Style, random: &mut Random, claims: &mut Claims) -> (Value, &'static str) {
        let value = self.another(random);
        let tool = DOMAINS[self.domain].tool;
        let call = |text: String, status: &str, version: &str| {
            json!({"kind": "call", "source": "tool", "tool": tool, "status": status, "version": version,
                   "fields": {"text": text}})
        };
        match random.below(100) {
            0..15 => {
                let text = phrases::failure(style, &self.fact(&value, None), random);
                (call(text, "failed", "v2"), "failed")
            }
            15..23 => {
                let text = style.state(&self.fact(&value, self.value.as_deref()), random).0;
                (call(text, "success", "v1"), "foreign-version")
            }
            23..31 => {
                let text = phrases::guess(&self.fact(&value, None), random);
                let turn = json!({"kind": "turn", "source": "assistant", "status": "unknown", "version": "v2",
                                  "fields": {"text": text}});
                (turn, "ungrounded")
            }
            _ => {
                let (text, form) = style.state(&self.fact(&value, self.value.as_deref()), random);
                claims.check(tool, &text, form, &self.fact(&value, None));
                self.value = Some(value);
                (call(text, "success", "v2"), "right")
            }
        }
    }

    fn note(&mut self, key: String, class: &'static str, step: u64) {
        if class == "right" {
            self.said.iter_mut().filter(|said| said.1 == "right").for_each(|said| said.1 = "stale");
        }
        self.said.push((key, class, step));
    }

    /// The question about it; `None` if nothing is right.
    fn ask(&self, random: &mut Random) -> Option<Question> {
        let (right, _, step) = self.said.iter().find(|said| said.1 == "right")?;
        let text = phrases::question(&self.fact("", None), random);
        let classes: Map<String, Value> = self.said.iter().map(|said| (said.0.clone(), json!(said.1))).collect();
        let line = json!({
            "question": text, "now_step": STEPS, "right": right, "right_is_fresh": STEPS - step <= FRESH,
            "classes": classes, "value": self.value,
        });
        let vector = HashingEmbedder::default().embed(&text)?;
        Some(Question { text, vector, line })
    }
}

impl Claims {
    /// Reads a look-up as the engine does and compares.
    fn check(&mut self, tool: &str, text: &str, form: String, fact: &Fact<'_>) {
        let read = |text: &str| extract(Some(tool), &[Field { name: "text", text }], &ExtractOptions::default());
        let value = normalise(fact.value);
        // Claims compete under one name only, so the subject must be that of the plainest form.
        let plain = format!("{tool}({}): {} = {}", fact.name, fact.attribute, fact.value);
        let subject = read(&plain).first().map(|claim| claim.subject.clone()).unwrap_or_default();
        let states = read(text).iter().any(|claim| {
            claim.subject == subject && claim.attribute == fact.attribute && claim.value.starts_with(&value)
        });
        let tally = self.0.entry(form).or_default();
        tally.0 += 1;
        tally.1 += usize::from(states);
    }

    /// The share of look-ups that were read, and the forms that were not always.
    pub(super) fn line(&self, style: Style) -> Value {
        let share = |(asked, read): (usize, usize)| (read as f64 / asked.max(1) as f64 * 10_000.0).round() / 10_000.0;
        let all = self.0.values().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let missed: Map<String, Value> = self
            .0
            .iter()
            .filter(|(_, tally)| tally.1 < tally.0)
            .map(|(form, tally)| (form.clone(), json!(share(*tally))))
            .collect();
        json!({"bench": "epistemic", "style": style.as_str(), "claims_read": share(all), "forms_missed": missed})
    }
}
