//! The policies over measured questions, one line each.

use super::{BUDGETS, CURVE, Held, Measured, label};
use crate::router::Labelled;
use crate::{Result, router};
use holotype::router::{Action, Label, LinearRouter, Router};
use serde_json::{Value, json};

/// The mean over questions.
fn mean(held: impl Iterator<Item = Held>) -> Held {
    let (mut sum, mut count) = (Held::default(), 0.0);
    for held in held {
        sum.support += held.support;
        sum.tokens += held.tokens;
        count += 1.0;
    }
    Held { support: sum.support / f64::max(count, 1.0), tokens: sum.tokens / f64::max(count, 1.0) }
}

/// The support of R for all at a mean cost, by linear interpolation between measured budgets.
fn flat(measured: &[Measured], tokens: f64) -> f64 {
    let curve: Vec<Held> = (0..CURVE.len()).map(|at| mean(measured.iter().map(|question| question.raw[at]))).collect();
    let Some(above) = curve.iter().position(|held| held.tokens >= tokens) else {
        return curve.last().map_or(0.0, |held| held.support);
    };
    let low = if above == 0 { Held::default() } else { curve[above - 1] };
    let high = curve[above];
    low.support + (high.support - low.support) * (tokens - low.tokens) / f64::max(high.tokens - low.tokens, 1.0)
}

pub(super) fn report(measured: &[Measured]) -> Result<()> {
    let built_in = LinearRouter::default();
    let decide = |question: &Measured| built_in.decide("", &[], &question.signals);
    let routed: Vec<Action> = measured.iter().map(decide).collect::<Result<_, String>>()?;
    let fitted = router::fitted(&measured.iter().map(Labelled::from).collect::<Vec<_>>())?;
    for (nth, budget) in BUDGETS.into_iter().enumerate() {
        let first = mean(measured.iter().map(|question| question.first));
        let both = mean(measured.iter().map(|question| question.both[nth]));
        let at = CURVE.iter().position(|known| *known == budget).unwrap_or(0);
        let raw = mean(measured.iter().map(|question| question.raw[at]));
        let gains = |question: &Measured| question.both[nth].support > question.first.support;
        let oracle: Vec<Action> =
            measured.iter().map(|question| if gains(question) { Action::Escalate } else { Action::Answer }).collect();
        let by = |actions: &[Action]| {
            mean(measured.iter().zip(actions).map(|(question, action)| match action {
                Action::Answer => question.first,
                Action::Escalate => question.both[nth],
            }))
        };
        let print = |method: &str, held: Held, extra: Value| {
            line(method, budget, measured.len(), held, extra);
        };
        print("summaries", first, Value::Null);
        print("raw", raw, Value::Null);
        for (method, actions) in [("routed", &routed), ("routed-fitted", &fitted), ("oracle", &oracle)] {
            let held = by(actions);
            let flat = flat(measured, held.tokens);
            let rate = rate(actions);
            print(method, held, compared(rate, held, flat, raw));
            if method == "routed" {
                print("flat", Held { support: flat, tokens: held.tokens }, Value::Null);
                let random = Held {
                    support: (1.0 - rate) * first.support + rate * both.support,
                    tokens: (1.0 - rate) * first.tokens + rate * both.tokens,
                };
                print("routed-random", random, json!({"rate": round(rate)}));
            }
        }
    }
    let labels: Vec<Label> = measured.iter().map(label).collect();
    if let Ok(all) = LinearRouter::fit(&labels, built_in.threshold) {
        println!("{}", json!({"bench": "tiermem", "method": "fit", "router": all.to_json()}));
    }
    Ok(())
}

fn rate(actions: &[Action]) -> f64 {
    let escalated = actions.iter().filter(|action| **action == Action::Escalate).count();
    escalated as f64 / actions.len().max(1) as f64
}

/// A policy beside `flat` at its cost and beside `raw`.
fn compared(rate: f64, held: Held, flat: f64, raw: Held) -> Value {
    json!({"rate": round(rate), "over_flat": round(held.support - flat),
        "of_raw_support": round(held.support / raw.support), "of_raw_tokens": round(held.tokens / raw.tokens)})
}

fn line(method: &str, budget: u64, questions: usize, held: Held, extra: Value) {
    let mut line = json!({"bench": "tiermem", "method": method, "budget": budget, "tokens": round(held.tokens),
        "support": round(held.support), "questions": questions});
    if let (Some(line), Value::Object(extra)) = (line.as_object_mut(), extra) {
        line.extend(extra);
    }
    println!("{line}");
}

fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
