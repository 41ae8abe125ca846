//! The sufficiency router (TierMem 3.2, D): are the retrieved summaries enough, or must raw pages be read?
//!
//! A router sees the question, the rows of the first tier, and [`Signals`] computed from them without a model. The
//! built-in [`LinearRouter`] estimates how likely the first tier suffices,
//!
//! ```text
//! p = sigmoid(bias + sum of weight_i * signal_i)        ANSWER if p >= threshold, else ESCALATE
//! ```
//!
//! and [`LinearRouter::fit`] learns bias and weights from labels (TierMem D.2). A router with a model behind it answers
//! in JSON, which [`parse_action`] reads strictly. What is not understood escalates: an answer without evidence is
//! worse than tokens spent in vain.

mod fit;
pub(crate) mod reading;
mod reward;

pub use fit::Label;
pub use reward::{Reward, Score};

use crate::{Error, Result};

/// The decision of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The first tier suffices.
    Answer,
    /// Raw pages must be read.
    Escalate,
}

impl Action {
    /// The action as a word: `answer` or `escalate`.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Answer => "answer",
            Action::Escalate => "escalate",
        }
    }
}

macro_rules! signals {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// Signals of sufficiency, each from 0 to 1.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Signals {
            $($(#[$meta])* pub $name: f32,)*
        }

        impl Signals {
            /// The names, in the order of [`Signals::values`].
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];
            /// The number of signals.
            pub const COUNT: usize = Self::NAMES.len();

            /// The values, in the order of [`Signals::NAMES`].
            pub fn values(&self) -> [f32; Self::COUNT] {
                [$(self.$name,)*]
            }

            /// Signals from their values, in the order of [`Signals::NAMES`].
            pub fn from_values(values: [f32; Self::COUNT]) -> Signals {
                let [$($name,)*] = values;
                Signals { $($name,)* }
            }
        }
    };
}

signals! {
    /// The share of the question's terms, by rarity, that the rows and the spans they cite contain.
    terms,
    /// The largest such share of a single row with its spans.
    row_terms,
    /// The share of the names in the question that occur in them.
    names,
    /// The share of the numbers and dates in the question that occur in them.
    numbers,
    /// The similarity of the nearest row.
    similarity,
    /// The lead of the first row over the last, relative to the first.
    gap,
    /// The share of the expected raw evidence in view that the rows cite. A trace counts by its place and its distance
    /// from the best, and for more if a finding that rests on it was written back.
    agreement,
    /// The share of it that rows cite which were written back from earlier escalations.
    learned,
    /// The reciprocal rank of the first raw trace that the rows cite.
    first_cited,
    /// The lead of the best raw trace that the rows do not cite over the best one that they cite; 0 if it has none.
    uncited_lead,
    /// 1 if the question asks for several things: a list or a count.
    asks_many,
    /// 1 if it asks for a time.
    asks_time,
    /// 1 if it asks for a judgement.
    asks_judgement,
}

/// Decides whether the first tier suffices. An error means ESCALATE.
pub trait Router: Send + Sync {
    /// Decides for a question, given the texts of the first tier's rows and their signals.
    ///
    /// # Errors
    /// A text for people; the caller escalates.
    fn decide(&self, question: &str, rows: &[&str], signals: &Signals) -> Result<Action, String>;

    /// The estimated probability that the first tier suffices, if the router has one.
    fn sufficiency(&self, signals: &Signals) -> Option<f32> {
        let _ = signals;
        None
    }
}

/// A logistic model over the signals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearRouter {
    /// The constant term.
    pub bias: f32,
    /// One weight a signal.
    pub weights: Signals,
    /// The estimated sufficiency from which it answers.
    pub threshold: f32,
}

impl Default for LinearRouter {
    /// The built-in router: the weights of a fit to 760 questions about five conversations, rounded. `holotype-bench
    /// tiermem` measures it beside routers that are fitted without the conversation they are asked about. Nothing was
    /// written back there, so the weight of `learned` is a guess, twice that of agreement. The threshold
    /// is high: raw pages are read sparingly, so an escalation in vain costs less than an answer in vain.
    fn default() -> Self {
        LinearRouter {
            bias: -1.5,
            weights: Signals {
                terms: 0.3,
                row_terms: 0.5,
                names: 0.0,
                numbers: -0.3,
                similarity: 0.2,
                gap: 0.6,
                agreement: 1.2,
                learned: 2.0,
                first_cited: 0.4,
                uncited_lead: -0.2,
                asks_many: -0.3,
                asks_time: 0.4,
                asks_judgement: -0.1,
            },
            threshold: 0.8,
        }
    }
}

impl LinearRouter {
    /// The estimated probability that the first tier suffices.
    pub fn estimate(&self, signals: &Signals) -> f32 {
        let weights = self.weights.values();
        let sum: f32 = signals.values().iter().zip(weights).map(|(signal, weight)| signal * weight).sum();
        1.0 / (1.0 + (-(self.bias + sum)).exp())
    }
}

impl Router for LinearRouter {
    fn decide(&self, _: &str, _: &[&str], signals: &Signals) -> Result<Action, String> {
        let estimate = self.estimate(signals);
        match estimate.is_nan() {
            true => Err("the router's weights or signals are not finite".to_owned()),
            false if estimate >= self.threshold => Ok(Action::Answer),
            false => Ok(Action::Escalate),
        }
    }

    fn sufficiency(&self, signals: &Signals) -> Option<f32> {
        Some(self.estimate(signals))
    }
}

/// Reads the action of a model's answer (TierMem, Figure 9): one JSON object with `"action": "S"` or `"R"`, optionally
/// with a text `thinking`, and nothing else. Anything else is ESCALATE.
///
/// ```
/// use holotype::router::{Action, parse_action};
/// assert_eq!(parse_action(r#"{"action": "S"}"#), Action::Answer);
/// assert_eq!(parse_action("S"), Action::Escalate);
/// ```
pub fn parse_action(text: &str) -> Action {
    let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text.trim()) else { return Action::Escalate };
    let known = object.iter().all(|(name, value)| match name.as_str() {
        "action" => true,
        "thinking" => value.is_string(),
        _ => false,
    });
    match object.get("action").and_then(serde_json::Value::as_str) {
        Some("S") if known => Action::Answer,
        _ => Action::Escalate,
    }
}

/// A router with a model behind it: a function from the question and the texts of the rows to the model's answer.
pub struct ModelRouter<F>(pub F);

impl<F: Fn(&str, &[&str]) -> Result<String, String> + Send + Sync> Router for ModelRouter<F> {
    fn decide(&self, question: &str, rows: &[&str], _: &Signals) -> Result<Action, String> {
        (self.0)(question, rows).map(|answer| parse_action(&answer))
    }
}

/// Tells from the words of a question if it asks for several things, for a time, for a judgement.
pub(crate) fn asks(question: &str) -> (bool, bool, bool) {
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    let is_plural = |word: &str| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    // `what books`, `which cities`, `what kinds of`, `what are`, `how many`.
    let many = matches!((first, second), ("how", "many" | "often") | ("what" | "which" | "who", "are" | "were"))
        || (matches!(first, "what" | "which") && words.iter().skip(1).take(3).any(|word| is_plural(word)))
        || words.iter().any(|word| matches!(*word, "all" | "both" | "list" | "each"));
    let time = first == "when"
        || matches!((first, second), ("how", "long") | ("what" | "which", "time" | "date" | "day" | "year" | "month"));
    let judgement = words.iter().any(|word| matches!(*word, "would" | "might" | "likely" | "probably" | "could"))
        || matches!(first, "why" | "is" | "does" | "do" | "did" | "are" | "was" | "can");
    (many, time, judgement)
}

impl LinearRouter {
    /// The router as JSON: `bias`, `threshold` and `weights` by name.
    pub fn to_json(&self) -> serde_json::Value {
        let named = Signals::NAMES.iter().zip(self.weights.values());
        let weights: serde_json::Map<_, _> = named.map(|(name, weight)| ((*name).to_owned(), weight.into())).collect();
        serde_json::json!({"bias": self.bias, "threshold": self.threshold, "weights": weights})
    }

    /// A router from its JSON. A weight that is not named is 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything but finite numbers under known names.
    pub fn from_json(text: &str) -> Result<LinearRouter> {
        let wrong = |what: &str| Error::Invalid(format!("a router in JSON: {what}"));
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|error| wrong(&format!("expected an object: {error}")))?;
        if let Some(name) = object.keys().find(|name| !["bias", "threshold", "weights"].contains(&name.as_str())) {
            return Err(wrong(&format!("unknown member {name:?}; expected bias, threshold and weights")));
        }
        let number = |name: &str, value: Option<&serde_json::Value>| {
            let value = value.and_then(serde_json::Value::as_f64).map(|value| value as f32);
            value.filter(|value| value.is_finite()).ok_or_else(|| wrong(&format!("{name} must be a finite number")))
        };
        let named = object.get("weights").and_then(serde_json::Value::as_object);
        let mut values = [0.0; Signals::COUNT];
        for (name, value) in named.ok_or_else(|| wrong("weights must be an object of numbers"))? {
            let known = Signals::NAMES.iter().position(|known| known == name);
            let place = known.and_then(|place| values.get_mut(place));
            let known = Signals::NAMES.join(", ");
            *place.ok_or_else(|| wrong(&format!("unknown signal {name:?}; the signals are {known}")))? =
                number(name, Some(value))?;
        }
        Ok(LinearRouter {
            bias: number("bias", object.get("bias"))?,
            threshold: number("threshold", object.get("threshold"))?,
            weights: Signals::from_values(values),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_in_json_keeps_to_the_summaries() {
        for text in [r#"{"action":"S"}"#, " {\"action\": \"S\", \"thinking\": \"explicit\"}\n"] {
            assert_eq!(parse_action(text), Action::Answer, "{text}");
        }
        let garbage = [
            "",
            "S",
            "{\"action\":\"S\"",
            r#"{"action":"s"}"#,
            r#"{"action":["S"]}"#,
            r#"{"action":"S","confidence":1}"#,
            r#"{"thinking":"S"}"#,
            r#"{"action":"S"} {"action":"R"}"#,
            "```json\n{\"action\":\"S\"}\n```",
            r#"{"action":"R"}"#,
        ];
        for text in garbage {
            assert_eq!(parse_action(text), Action::Escalate, "{text}");
        }
    }

    #[test]
    fn questions_say_what_they_ask_for() {
        assert_eq!(asks("What books did Tim read?"), (true, false, false));
        assert_eq!(asks("How many times did they meet?"), (true, false, false));
        assert_eq!(asks("When did Ann go to Rome?"), (false, true, false));
        assert_eq!(asks("Would Ann enjoy a museum?"), (false, false, true));
        assert_eq!(asks("What did Ann recommend?"), (false, false, false));
    }

    #[test]
    fn a_router_survives_its_json_and_refuses_what_it_does_not_know() {
        let router = LinearRouter::default();
        assert_eq!(LinearRouter::from_json(&router.to_json().to_string()).unwrap(), router);
        for wrong in ["[]", "{}", r#"{"bias":0,"threshold":0.5,"weights":{"magic":1}}"#, r#"{"bias":"x"}"#] {
            assert!(matches!(LinearRouter::from_json(wrong), Err(Error::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn weights_that_are_not_numbers_escalate() {
        let router = LinearRouter { bias: f32::NAN, ..LinearRouter::default() };
        assert!(router.decide("q", &[], &Signals::default()).is_err());
    }
}
