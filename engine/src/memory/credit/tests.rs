//! Credit against a second implementation written from the paper's text, invariance under the order of lines, and every
//! refusal.

use super::*;
use proptest::prelude::*;

/// Quadratic, with nothing shared with the module: each equation is a function of all writes.
mod naive {
    use super::super::*;

    fn deviation(values: &[f64], sample: bool) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        match (sample, values.len()) {
            (true, 1) => (mean, 0.0),
            (true, _) => (mean, (squares / (n - 1.0)).sqrt()),
            (false, _) => (mean, (squares / n).sqrt()),
        }
    }

    /// Eq. 14 unrolled: the sum of alpha (1 - alpha)^k A_{t+k}, the last term without alpha.
    fn unrolled(a: &[f64], alpha: f64) -> f64 {
        let last = a.len() - 1;
        let term = |(k, v): (usize, &f64)| (1.0 - alpha).powi(k as i32) * if k == last { 1.0 } else { alpha } * v;
        a.iter().enumerate().map(term).sum()
    }

    pub(super) fn credit(writes: &[Write<'_>], o: &CreditOptions) -> Credits {
        let sample = o.deviation == Deviation::Sample;
        let same = |a: &Write<'_>, b: &Write<'_>| (a.group, a.rollout) == (b.group, b.rollout);
        let reward = |w: &Write<'_>| writes.iter().filter(|v| same(v, w)).find_map(|v| v.reward).unwrap();
        let trajectory = |w: &Write<'_>| {
            let mut rollouts: Vec<&Write<'_>> = Vec::new();
            for v in writes.iter().filter(|v| v.group == w.group) {
                if !rollouts.iter().any(|r| same(r, v)) {
                    rollouts.push(v);
                }
            }
            let rewards: Vec<f64> = rollouts.iter().map(|r| reward(r)).collect();
            let (mean, sd) = deviation(&rewards, sample);
            (reward(w) - mean) / (sd + o.epsilon)
        };
        let siblings = |w: &Write<'_>| -> Vec<Scores> {
            let step = w.scored.unwrap().0;
            let of = writes.iter().filter(|v| v.group == w.group);
            of.filter_map(|v| v.scored.filter(|s| s.0 == step).map(|s| s.1)).collect()
        };
        let delta_hat = |w: &Write<'_>| {
            let deltas: Vec<f64> = siblings(w).iter().map(|s| s.s_now - s.s_prev).collect();
            let (mean, sd) = deviation(&deltas, sample);
            let s = w.scored.unwrap().1;
            if deltas.iter().all(|d| *d == deltas[0]) { 0.0 } else { (s.s_now - s.s_prev - mean) / (sd + o.epsilon) }
        };
        let raw = |w: &Write<'_>| {
            let h: Vec<f64> = siblings(w).iter().filter_map(|s| s.log_h).collect();
            let own = w.scored.unwrap().1.log_h;
            own.filter(|_| h.iter().any(|v| *v != h[0])).map_or(0.0, |own| own - deviation(&h, sample).0)
        };
        let clip = |v: f64| v.max(o.rho_range.0.ln()).min(o.rho_range.1.ln());
        let scored: Vec<&Write<'_>> = writes.iter().filter(|w| w.scored.is_some()).collect();
        let ratios: Vec<f64> =
            scored.iter().map(|w| if o.beta_before_clipping { raw(w) } else { clip(raw(w)) }).collect();
        let sd = if ratios.is_empty() { 0.0 } else { deviation(&ratios, sample).1 };
        let beta = (o.calibration / (sd + o.epsilon)).max(o.beta_range.0).min(o.beta_range.1);
        let gate = |w: &Write<'_>| {
            let d = delta_hat(w);
            let sign = f64::from(i8::from(d > 0.0) - i8::from(d < 0.0));
            if o.gate { 1.0 / (1.0 + f64::exp(-beta * (sign * clip(raw(w)) - o.tau_rho))) } else { 1.0 }
        };
        let advantage = |w: &Write<'_>| {
            let a = gate(w) * delta_hat(w);
            if a < 0.0 && o.success.is_some_and(|s| reward(w) >= s) { 0.0 } else { a }
        };
        let smoothed = |w: &Write<'_>| {
            let step = w.scored.unwrap().0;
            let mut later: Vec<&&Write<'_>> =
                scored.iter().filter(|v| same(v, w) && v.scored.unwrap().0 >= step).collect();
            later.sort_by_key(|v| v.scored.unwrap().0);
            let a: Vec<f64> = later.iter().map(|v| advantage(v)).collect();
            unrolled(&a, o.smoothing.unwrap_or(1.0))
        };
        let line = |w: &Write<'_>| {
            let trajectory_advantage = trajectory(w);
            let write = w.scored.map(|(_, s)| WriteCredit {
                delta: s.s_now - s.s_prev,
                delta_hat: delta_hat(w),
                log_rho: clip(raw(w)),
                gate: gate(w),
                advantage: advantage(w),
                smoothed: smoothed(w),
                token_advantage: trajectory_advantage + o.lambda * smoothed(w),
            });
            Credit { trajectory_advantage, write }
        };
        Credits { beta, lines: writes.iter().map(line).collect() }
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn number() -> impl Strategy<Value = f64> {
    // Few distinct values, so that ties and flat groups occur, beside arbitrary ones.
    prop_oneof![(-6_i32..0).prop_map(|n| f64::from(n) * 0.5), -20.0..0.0]
}

/// Lines of a few groups: a set of writes and lone rewards, one reward per rollout.
fn lines() -> impl Strategy<Value = Vec<Write<'static>>> {
    let line = (0..3_usize, 0..4_usize, prop::option::weighted(0.9, 0..4_u64), number(), number(), number());
    (prop::collection::vec(line, 0..40), prop::collection::vec(0..3_u8, 12)).prop_map(|(lines, rewards)| {
        let mut seen = std::collections::HashSet::new();
        let mut writes = Vec::new();
        for (group, rollout, step, s_prev, s_now, log_h) in lines {
            if seen.insert((group, rollout, step)) {
                let scored = step.map(|step| (step, Scores { s_prev, s_now, log_h: Some(log_h) }));
                let reward = Some(f64::from(rewards[group * 4 + rollout]) * 0.5);
                writes.push(Write { group: NAMES[group], rollout: NAMES[rollout], reward, scored, template: None });
            }
        }
        writes
    })
}

fn options() -> impl Strategy<Value = CreditOptions> {
    let switches =
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0.0..=1.0), prop::option::of(0.0..2.0));
    (switches, -1.0..1.0, 0.0..2.0).prop_map(|((gate, before, sample, smoothing, success), tau_rho, lambda)| {
        CreditOptions {
            gate,
            beta_before_clipping: before,
            deviation: if sample { Deviation::Sample } else { Deviation::Population },
            smoothing,
            success,
            tau_rho,
            lambda,
            ..CreditOptions::default()
        }
    })
}

fn numbers(credits: &Credits) -> Vec<f64> {
    let of_write =
        |w: &WriteCredit| [w.delta, w.delta_hat, w.log_rho, w.gate, w.advantage, w.smoothed, w.token_advantage];
    let lines = credits.lines.iter();
    let of_line =
        lines.flat_map(|l| l.write.iter().flat_map(of_write).chain([l.trajectory_advantage]).collect::<Vec<_>>());
    of_line.chain([credits.beta]).collect()
}

proptest! {
    #[test]
    fn agrees_with_the_naive_implementation(writes in lines(), options in options()) {
        let found = numbers(&credit(&writes, &options).unwrap());
        let expected = numbers(&naive::credit(&writes, &options));
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{} for {}", found, expected);
        }
    }

    #[test]
    fn the_order_of_lines_changes_no_bit(writes in lines().prop_shuffle(), options in options(), seed in any::<u64>()) {
        let credits = credit(&writes, &options).unwrap();
        let mut order: Vec<usize> = (0..writes.len()).collect();
        order.sort_by_key(|i| (*i as u64 + 1).wrapping_mul(seed | 1).rotate_left(29));
        let shuffled: Vec<Write<'_>> = order.iter().map(|i| writes[*i]).collect();
        let again = credit(&shuffled, &options).unwrap();
        prop_assert_eq!(again.beta.to_bits(), credits.beta.to_bits());
        for (line, i) in again.lines.iter().zip(&order) {
            prop_assert_eq!(line, &credits.lines[*i]);
        }
    }

    #[test]
    fn a_successful_rollout_has_no_negative_credit(writes in lines()) {
        let credits = credit(&writes, &CreditOptions::default()).unwrap();
        for (write, line) in writes.iter().zip(&credits.lines) {
            let negative = line.write.is_some_and(|w| w.advantage < 0.0 || w.smoothed < 0.0);
            prop_assert!(!(negative && write.reward.unwrap() >= 1.0));
        }
    }
}

fn scores(s_prev: f64, s_now: f64, log_h: f64) -> Scores {
    Scores { s_prev, s_now, log_h: Some(log_h) }
}

#[test]
fn a_worked_example() {
    let writes = [
        Write::new("g", "0", 0, scores(-2.0, -1.0, -1.0)).reward(0.0),
        Write::new("g", "1", 0, scores(-2.0, -3.0, -2.0)).reward(1.0),
        Write::reward_only("g", "2", 1.0),
    ];
    let credits = credit(&writes, &CreditOptions { epsilon: 0.0, ..CreditOptions::default() }).unwrap();
    // D is 1 and -1, log rho 0.5 and -0.5 with deviation 0.5: both gates are sigmoid(1.39).
    let gate = 1.0 / (1.0 + (-1.39_f64).exp());
    let [first, second] = [0, 1].map(|i: usize| credits.lines[i].write.unwrap());
    assert!((credits.beta - 2.78).abs() < 1e-12);
    assert_eq!((first.delta, first.delta_hat, first.log_rho), (1.0, 1.0, 0.5));
    assert!((first.advantage - gate).abs() < 1e-12);
    assert_eq!((second.delta_hat, second.advantage), (-1.0, 0.0), "the rollout succeeded");
    let mean = 2.0 / 3.0;
    let expected = (0.0 - mean) / (2.0 / 9.0_f64).sqrt();
    assert!((credits.lines[0].trajectory_advantage - expected).abs() < 1e-12);
    assert_eq!(credits.lines[2].write, None);
}

#[test]
fn lone_and_equal_writes_have_no_credit() {
    let equal = |rollout| Write::new("g", rollout, 1, scores(-0.3, -0.1, -0.7)).reward(0.1);
    let writes = [equal("0"), equal("1"), equal("2"), Write::new("h", "0", 0, scores(-9.0, -1.0, -3.0)).reward(0.3)];
    for line in credit(&writes, &CreditOptions::default()).unwrap().lines {
        let write = line.write.unwrap();
        assert_eq!((write.delta_hat, write.log_rho, write.advantage, write.token_advantage), (0.0, 0.0, 0.0, 0.0));
        assert_eq!((write.gate, line.trajectory_advantage), (0.5, 0.0));
    }
}

#[test]
fn no_lines_have_no_credit() {
    assert_eq!(credit(&[], &CreditOptions::default()).unwrap().lines, []);
}

#[test]
fn each_refusal_names_its_line() {
    let good = Write::new("g", "0", 0, scores(-1.0, -1.0, -1.0)).reward(1.0);
    let refused = |second: Write<'static>| {
        let error = credit(&[good, second], &CreditOptions::default()).unwrap_err();
        assert_eq!(error.line, Some(2), "{error}");
        error.to_string()
    };
    for (write, told) in [
        (Write::new("g", "1", 0, scores(f64::NAN, 0.0, 0.0)).reward(0.0), "line 2: `s_prev` is NaN"),
        (Write::new("g", "1", 0, scores(0.0, f64::NEG_INFINITY, 0.0)).reward(0.0), "line 2: `s_now` is -inf"),
        (Write::new("g", "1", 0, scores(0.0, 0.0, f64::NAN)).reward(0.0), "line 2: `log_h` is NaN"),
        (Write::reward_only("g", "1", f64::NAN), "line 2: `reward` is NaN"),
        (Write::reward_only("g", "1", 1e101), "line 2: `reward` is 1e101"),
        (good, "line 2: group \"g\", rollout \"0\" already has step 0 on line 1"),
        (Write::reward_only("g", "0", 0.5), "line 2: group \"g\", rollout \"0\" has reward 0.5, but 1 on line 1"),
        (
            Write::new("g", "1", 0, scores(0.0, 0.0, 0.0)),
            "line 2: no line gives the reward of group \"g\", rollout \"1\"",
        ),
        (
            Write { group: "g", rollout: "1", reward: None, scored: None, template: None },
            "line 2: the line has neither",
        ),
    ] {
        let error = refused(write);
        assert!(error.starts_with(told), "{error}");
    }
    let twice = [Write::reward_only("g", "0", 1.0), Write::reward_only("g", "0", 1.0)];
    let error = credit(&twice, &CreditOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("line 2: group \"g\", rollout \"0\" already has a reward line, line 1"));
}

#[test]
fn options_out_of_range_are_refused() {
    let default = CreditOptions::default;
    for (name, options) in [
        ("lambda", CreditOptions { lambda: f64::NAN, ..default() }),
        ("tau_rho", CreditOptions { tau_rho: f64::INFINITY, ..default() }),
        ("rho_range", CreditOptions { rho_range: (0.0, 10.0), ..default() }),
        ("rho_range", CreditOptions { rho_range: (0.1, 0.5), ..default() }),
        ("calibration", CreditOptions { calibration: 0.0, ..default() }),
        ("beta_range", CreditOptions { beta_range: (2.0, 1.0), ..default() }),
        ("smoothing", CreditOptions { smoothing: Some(1.5), ..default() }),
        ("success", CreditOptions { success: Some(f64::NAN), ..default() }),
        ("epsilon", CreditOptions { epsilon: -1.0, ..default() }),
    ] {
        let error = credit(&[], &options).unwrap_err();
        assert!(error.line.is_none() && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn tokens_of_a_write_take_its_advantage() {
    let writes = [
        Write::new("g", "0", 3, scores(-2.0, -1.0, -1.0)).reward(0.0),
        Write::new("g", "1", 3, scores(-2.0, -3.0, -2.0)).reward(1.0),
    ];
    let credits = credit(&writes, &CreditOptions::default()).unwrap();
    let line = [(writes[0], credits.lines[0])];
    let span = |step, tokens| MemSpan { step, tokens };
    let advantages = scatter(4, &[span(3, 1..3)], &line).unwrap();
    let (outside, inside) = (credits.lines[0].trajectory_advantage, credits.lines[0].write.unwrap().token_advantage);
    assert_eq!(advantages, [outside, inside, inside, outside]);
    for (spans, told) in [
        (vec![span(2, 0..1)], "line 1: option `mem` is out of range; expected the step"),
        (vec![span(3, 0..5)], "line 1: option `mem` is out of range; expected a range"),
        (vec![span(3, 0..2), span(3, 1..2)], "line 2: option `mem` is out of range; expected tokens"),
    ] {
        let error = scatter(4, &spans, &line).unwrap_err();
        assert!(error.to_string().starts_with(told), "{error}");
    }
}

#[test]
fn the_objective_is_clipped_on_the_pessimistic_side() {
    let rollout = RolloutTokens {
        policy: vec![-1.0, -1.0, -1.0],
        old: vec![-1.0, -1.5, -1.5],
        reference: vec![-1.0, -1.0, -2.0],
        advantages: vec![2.0, 1.0, -1.0],
    };
    let found = objective(std::slice::from_ref(&rollout), &ObjectiveOptions { clip: 0.2, kl_weight: 0.5 }).unwrap();
    // Ratios 1, e^0.5, e^0.5: the second counts as 1.2, the third in full because its advantage is negative.
    let surrogate = (2.0 + 1.2 - 0.5_f64.exp()) / 3.0;
    let kl = ((-1.0_f64).exp() + 1.0 - 1.0) / 3.0;
    assert!((found.surrogate - surrogate).abs() < 1e-12 && (found.kl - kl).abs() < 1e-12);
    assert!((found.value - (surrogate - 0.5 * kl)).abs() < 1e-12);
    assert!((found.clipped_share - 1.0 / 3.0).abs() < 1e-12);
    let short = RolloutTokens { old: vec![-1.0], ..rollout };
    assert_eq!(objective(&[short], &ObjectiveOptions::default()).unwrap_err().line, Some(1));
    assert!(objective(&[], &ObjectiveOptions { clip: -1.0, kl_weight: 0.0 }).is_err());
}

#[test]
fn the_mean_of_no_tokens_is_none() {
    assert_eq!(mean_log_prob(&[-1.0, -3.0]), Some(-2.0));
    assert_eq!(mean_log_prob(&[]), None);
}
