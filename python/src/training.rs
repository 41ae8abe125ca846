//! Credit of memory writes (HiMPO) and information density (PlugMem D), over plain values.

use crate::errors;
use crate::interrupt;
use crate::roles::Policy;
use crate::values::{member, text_of};
use holotype::credit::{
    ChangeAnswer, CreditOptions, Deviation, Intervention, Module, Run, RunStep, Scoreboard, Scorer, Scores, Template,
    WordScorer, Write, credit as credit_of, deconfound as measure, intervene as plant,
};
use holotype::density::{Case, DensityOptions, density_with};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// `s_prev`, `s_now` and `log_h` of a step.
type StepCredit = (f64, f64, Option<f64>);
/// Memory, think, call and observation of a step.
type FourTexts = (String, String, String, String);

/// Options of credit by name.
fn options(given: &Bound<'_, PyDict>) -> PyResult<CreditOptions> {
    let mut options = CreditOptions::default();
    for (name, value) in given.iter() {
        let name = text_of("an option", &name)?;
        let number = || member::<f64>(&name, "a number", &value);
        match name.as_str() {
            "lambda_" => options.lambda = number()?,
            "tau_rho" => options.tau_rho = number()?,
            "calibration" => options.calibration = number()?,
            "epsilon" => options.epsilon = number()?,
            "smoothing" => options.smoothing = value.extract()?,
            "success" => options.success = value.extract()?,
            "gate" => options.gate = value.extract()?,
            "beta_before_clipping" => options.beta_before_clipping = value.extract()?,
            "rho_range" => options.rho_range = member(&name, "two numbers", &value)?,
            "beta_range" => options.beta_range = member(&name, "two numbers", &value)?,
            "sample_deviation" if value.is_truthy()? => options.deviation = Deviation::Sample,
            "sample_deviation" => options.deviation = Deviation::Population,
            _ => {
                let known = "known are lambda_, tau_rho, calibration, epsilon, smoothing, success, gate, \
                             beta_before_clipping, rho_range, beta_range and sample_deviation";
                let py = value.py();
                return Err(errors::invalid(py, "unknown-option", &format!("unknown option {name:?}"), known));
            }
        }
    }
    Ok(options)
}

/// A write or a reward: group, rollout, reward, and step with `s_prev`, `s_now` and `log_h`.
type Line = (String, String, Option<f64>, Option<(u64, f64, f64, Option<f64>)>);

fn write((group, rollout, reward, scored): &Line) -> Write<'_> {
    let scored = scored.map(|(step, s_prev, s_now, log_h)| (step, Scores { s_prev, s_now, log_h }));
    Write { group, rollout, reward: *reward, scored, template: None }
}

/// The credit of lines: `beta`, and for each line the trajectory's advantage with the credit of its write.
#[pyfunction]
pub(crate) fn credit<'py>(
    py: Python<'py>,
    lines: Vec<Line>,
    given: &Bound<'py, PyDict>,
) -> PyResult<(f64, Bound<'py, PyList>)> {
    let options = options(given)?;
    let writes: Vec<Write<'_>> = lines.iter().map(write).collect();
    let credits = py.detach(|| credit_of(&writes, &options));
    let credits = credits.map_err(|error| errors::raise(py, &holotype::Error::Invalid(error.to_string()), None))?;
    let list = PyList::empty(py);
    for line in &credits.lines {
        let dict = PyDict::new(py);
        dict.set_item("trajectory_advantage", line.trajectory_advantage)?;
        if let Some(write) = line.write {
            for (name, value) in [
                ("delta", write.delta),
                ("delta_hat", write.delta_hat),
                ("log_rho", write.log_rho),
                ("gate", write.gate),
                ("advantage", write.advantage),
                ("smoothed", write.smoothed),
                ("token_advantage", write.token_advantage),
            ] {
                dict.set_item(name, value)?;
            }
        }
        list.append(dict)?;
    }
    Ok((credits.beta, list))
}

/// A run: group, rollout, question, outcome, reward, and steps of memory, think, call and observation.
type GivenRun = (String, String, String, String, f64, Vec<(String, String, String, String)>);

fn run((group, rollout, question, outcome, reward, steps): GivenRun) -> Run {
    let step = |(memory, think, call, observation)| RunStep { memory, think, call, observation };
    Run { group, rollout, question, outcome, reward, steps: steps.into_iter().map(step).collect() }
}

/// Works with a scoreboard of a policy, or of the built-in scorer.
fn scored<T: Send>(
    py: Python<'_>,
    policy: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Scoreboard<'_>) -> holotype::Result<T> + Send,
) -> PyResult<T> {
    let policy = Policy::read(policy);
    interrupt::run(py, None, |_| {
        let template = Template::default();
        let scorer = policy.as_ref().map_or(&WordScorer as &dyn Scorer, |policy| policy as &dyn Scorer);
        work(&Scoreboard { scorer, template: &template })
    })
}

/// `s_prev`, `s_now` and `log_h` of every write of each run.
#[pyfunction]
pub(crate) fn score(
    py: Python<'_>,
    runs: Vec<GivenRun>,
    policy: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Vec<StepCredit>>> {
    let runs: Vec<Run> = runs.into_iter().map(run).collect();
    let found =
        scored(py, policy, |board| runs.iter().map(|run| board.scores(run)).collect::<holotype::Result<Vec<_>>>())?;
    let of_run = |scores: Vec<Scores>| scores.into_iter().map(|it| (it.s_prev, it.s_now, it.log_h)).collect();
    Ok(found.into_iter().map(of_run).collect())
}

/// The five measures of Table 4, and the number of interventions that each rests on.
#[pyfunction]
pub(crate) fn deconfound<'py>(
    py: Python<'py>,
    runs: Vec<GivenRun>,
    policy: Option<&Bound<'py, PyAny>>,
    given: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(given)?;
    let runs: Vec<Run> = runs.into_iter().map(run).collect();
    let found = scored(py, policy, |board| measure(&runs, board, &ChangeAnswer, &options))?;
    let [corrupted, dropped, early, perturbed] = found.counts;
    let dict = PyDict::new(py);
    for (name, value, of) in [
        ("faithful_under_bad_tool", found.faithful_under_bad_tool, corrupted),
        ("over_clean", found.over_clean, corrupted),
        ("drop_localisation", found.drop_localisation, dropped),
        ("delayed_recovery", found.delayed_recovery, early),
        ("concentration", found.concentration, perturbed),
    ] {
        dict.set_item(name, (value, of))?;
    }
    Ok(dict)
}

/// The steps of a run with a planted fault; `None` where the run has nothing to plant it in.
#[pyfunction]
pub(crate) fn intervene(py: Python<'_>, given: GivenRun, fault: &str, step: usize) -> PyResult<Option<Vec<FourTexts>>> {
    let intervention = match fault {
        "tool" => Intervention::ToolCorruption { step },
        "memory" => Intervention::MemoryDrop { step },
        "memory_for_good" => Intervention::DelayedDrop { step },
        "think" => Intervention::Perturb { module: Module::Think, step },
        "call" => Intervention::Perturb { module: Module::Call, step },
        "observation" => Intervention::Perturb { module: Module::Observation, step },
        other => {
            let hint = "give tool, memory, memory_for_good, think, call or observation";
            return Err(errors::invalid(py, "bad-fault", &format!("unknown fault {other:?}"), hint));
        }
    };
    let changed = interrupt::run(py, None, |_| plant(&run(given), intervention, &ChangeAnswer))?;
    let step = |step: RunStep| (step.memory, step.think, step.call, step.observation);
    Ok(changed.map(|changed| changed.run.steps.into_iter().map(step).collect()))
}

/// Bits a token of decisions: each is the probability without memory, with it, and the tokens of the memory.
#[pyfunction]
#[pyo3(signature = (cases, confident, epsilon=None))]
pub(crate) fn density<'py>(
    py: Python<'py>,
    cases: Vec<(f64, f64, u64)>,
    confident: f64,
    epsilon: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let case = |(base, mem, tokens)| Case { base, mem, tokens, actions: None };
    let cases: Vec<Case> = cases.into_iter().map(case).collect();
    let found = density_with(&cases, &DensityOptions { confident, epsilon });
    let found = found.map_err(|error| errors::raise(py, &holotype::Error::Invalid(error.to_string()), None))?;
    let dict = PyDict::new(py);
    dict.set_item("density", found.density)?;
    dict.set_item("recall_rate", found.recall_rate)?;
    dict.set_item("active_density", found.active_density)?;
    dict.set_item("active_cases", found.active_count)?;
    dict.set_item("pmi", found.cases.iter().map(|case| case.pmi).collect::<Vec<_>>())?;
    Ok(dict)
}
