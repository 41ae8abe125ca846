//! The log of a run: one JSON object a line, with one name, its kind.
//!
//! ```text
//! {"episode":{"id":"e1","benchmark":"GAIA","split":"L2","recall":"A1","success":true,"score":0.5}}
//! {"cost":{"episode":"e1","step":3,"system":200,"history":900,"tools":120,"search_us":45000}}
//! {"route":{"receipt":"rc-3","system":"router","correct":true,"s":true,"r":true}}
//! {"epoch":{"name":"E1","add":720,"update":0}}
//! {"answer":{"benchmark":"HotpotQA","method":"PlugMem","answer":"Oslo","right":["Oslo"],"tokens":81}}
//! {"exam":{"model":"4B","variant":"HiMPO","task":"NQ","answer":"Oslo","right":["Oslo"]}}
//! {"hops":{"question":"Where was the founder born?"}}
//! {"run":{"group":"g1","rollout":0,"step":0,"reward":1.0,"question":"…","outcome":"…","mem":"…"}}
//! ```
//!
//! Invariant: a member that a kind does not have is refused, with its line.

use crate::failure::Problem;
use serde_json::{Map, Value};

/// The members of each kind.
const KINDS: [(&str, &[&str]); 8] = [
    (
        "episode",
        &[
            "id",
            "benchmark",
            "split",
            "recall",
            "controller",
            "ablation",
            "layers",
            "success",
            "score",
            "coverage",
            "validity",
            "precision",
        ],
    ),
    (
        "cost",
        &["episode", "step", "system", "history", "tools", "search_us", "expand_us", "controller_us", "generation_us"],
    ),
    ("route", &["receipt", "system", "epoch", "correct", "s", "r", "action", "tokens_in", "seconds"]),
    ("epoch", &["name", "add", "update"]),
    ("answer", &["benchmark", "method", "embedder", "llm", "answer", "right", "correct", "tokens", "base", "mem"]),
    ("exam", &["model", "variant", "task", "answer", "right"]),
    ("hops", &["question", "path"]),
    ("run", &[]),
];

/// A line of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    members: Map<String, Value>,
}

impl Entry {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.members.get(name).and_then(Value::as_f64)
    }

    pub(super) fn whole(&self, name: &str) -> u64 {
        self.members.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.members.get(name).and_then(Value::as_bool)
    }

    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        self.members.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// The lines of a run, by kind.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) episodes: Vec<Entry>,
    pub(super) costs: Vec<Entry>,
    pub(super) routes: Vec<Entry>,
    pub(super) epochs: Vec<Entry>,
    pub(super) answers: Vec<Entry>,
    pub(super) exams: Vec<Entry>,
    pub(super) hops: Vec<Entry>,
    /// Lines of runs, as `holotype rollouts` reads them.
    pub(super) runs: String,
}

impl Log {
    pub(super) fn read(text: &str, file: &str) -> Result<Log, Problem> {
        let mut log = Log::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            log.add(line).map_err(|message| {
                let hint = "one JSON object a line, with one of the names episode, cost, route, epoch, answer, exam, \
                            hops and run";
                Problem::input("line", message).file(file).at(at as u64 + 1, 1).hint(hint)
            })?;
        }
        Ok(log)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let object: Map<String, Value> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut names = object.into_iter();
        let (Some((kind, value)), None) = (names.next(), names.next()) else {
            return Err("a line has one name".to_owned());
        };
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        let (kind, known) = known.ok_or_else(|| format!("unknown name {kind:?}"))?;
        let Value::Object(members) = value else { return Err(format!("`{kind}` is no object")) };
        if *kind == "run" {
            self.runs += &Value::Object(members).to_string();
            self.runs.push('\n');
            return Ok(());
        }
        if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("`{kind}` has no member {name:?}; it has {}", known.join(", ")));
        }
        let needed = match *kind {
            "episode" => "id",
            "cost" => "episode",
            "epoch" => "name",
            "answer" => "method",
            "exam" => "variant",
            "hops" => "question",
            _ => "system",
        };
        let entry = Entry { members };
        if entry.text(needed).is_none() {
            return Err(format!("`{kind}` needs a text `{needed}`"));
        }
        match *kind {
            "episode" => &mut self.episodes,
            "cost" => &mut self.costs,
            "route" => &mut self.routes,
            "epoch" => &mut self.epochs,
            "answer" => &mut self.answers,
            "exam" => &mut self.exams,
            _ => &mut self.hops,
        }
        .push(entry);
        Ok(())
    }
}
