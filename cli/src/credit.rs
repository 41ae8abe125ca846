//! `holotype credit`: HiMPO advantages of memory writes, from log-probabilities.
//!
//! Every line is printed with its credit appended; its own members stay as they were written. The whole file is read
//! first, because `beta` (eq. 17) depends on all writes. With `--db`, the item of each write gets the mean of its
//! smoothed advantage over rollouts as its credit, all in one commit. With `--keep` the rollouts stay in the database,
//! and the credit is that over all kept ones, so that files may come one after the other.
//!
//! A line with the tokens of a rollout gets the advantage of each token (eq. 15); after the last line follows the
//! clipped objective over all of them (eq. 16).

pub(crate) mod lines;
mod parts;
mod tokens;

use crate::failure::{Failure, Problem, Status};
use crate::{database, script};
use holotype::credit::{
    Credit, CreditError, CreditOptions, Credits, Deviation, Rollout, RolloutStep, credit, mean_credit,
};
use holotype::plural::counted;
use holotype::{Durability, Mark, Target};
use lines::Lines;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON object per memory write, or per reward of a rollout; `-` is stdin
    file: PathBuf,
    /// Store the mean smoothed advantage of each `item` as its credit
    #[arg(long, value_name = "DB")]
    db: Option<PathBuf>,
    /// Keep the rollouts in the database as training data; its utilities are then those over all kept rollouts
    #[arg(long, requires = "db")]
    keep: bool,
    /// The distance from 1 up to which the ratio of eq. 16 counts (epsilon)
    #[arg(long, value_name = "X", default_value_t = 0.2)]
    clip: f64,
    /// Weight of the KL estimate in eq. 16 (beta_KL)
    #[arg(long, value_name = "X", default_value_t = 0.001)]
    kl_weight: f64,
    /// Weight of memory credit on the tokens of a write (lambda_M, eq. 15)
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    lambda: f64,
    /// Threshold of the gate (tau_rho, eq. 11)
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    tau_rho: f64,
    /// Least rho (C_min)
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    rho_min: f64,
    /// Greatest rho (C_max)
    #[arg(long, value_name = "X", default_value_t = 10.0)]
    rho_max: f64,
    /// Calibration constant of the gate's sharpness (c, eq. 17)
    #[arg(long, value_name = "X", default_value_t = 1.39)]
    calibration: f64,
    /// Least sharpness of the gate (beta_min)
    #[arg(long, value_name = "X", default_value_t = 0.5)]
    beta_min: f64,
    /// Greatest sharpness of the gate (beta_max)
    #[arg(long, value_name = "X", default_value_t = 20.0)]
    beta_max: f64,
    /// Take the spread of log rho before clipping it
    #[arg(long)]
    beta_before_clipping: bool,
    /// Smoothing coefficient (alpha, eq. 14)
    #[arg(long, value_name = "X", default_value_t = 0.5)]
    alpha: f64,
    /// Reward from which a rollout counts as successful (tau_succ, eq. 13)
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    success: f64,
    /// Added to a deviation before dividing by it
    #[arg(long, value_name = "X", default_value_t = 1e-6)]
    epsilon: f64,
    /// Divide by n - 1 in standard deviations
    #[arg(long)]
    sample_deviation: bool,
    /// Do not gate by hindsight relevance (eq. 11)
    #[arg(long)]
    no_gate: bool,
    /// Keep negative credit in successful rollouts (eq. 13)
    #[arg(long)]
    no_mask: bool,
    /// Do not smooth credit backward (eq. 14)
    #[arg(long)]
    no_smoothing: bool,
}

impl Args {
    fn options(&self) -> CreditOptions {
        CreditOptions {
            lambda: self.lambda,
            tau_rho: self.tau_rho,
            rho_range: (self.rho_min, self.rho_max),
            calibration: self.calibration,
            beta_range: (self.beta_min, self.beta_max),
            beta_before_clipping: self.beta_before_clipping,
            smoothing: (!self.no_smoothing).then_some(self.alpha),
            success: (!self.no_mask).then_some(self.success),
            gate: !self.no_gate,
            epsilon: self.epsilon,
            deviation: if self.sample_deviation { Deviation::Sample } else { Deviation::Population },
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Status, Failure> {
    let (text, name) = script::read_named(&args.file)?;
    let lines = lines::read(&text, &name)?;
    let of_tokens: Vec<_> = lines.all.iter().filter_map(|line| Some((line, line.tokens()?))).collect();
    let credits = credit(&lines.writes, &args.options()).map_err(|error| refused(error, &lines, &name))?;
    let scattered = tokens::scatter_all(&of_tokens, &lines.writes, &credits, &name)?;
    let objective = tokens::objective_of(&scattered, &of_tokens, (args.clip, args.kl_weight), &name)?;
    match &args.db {
        Some(db) if args.keep => keep(db, &lines, &args.options(), &name)?,
        Some(db) => store(db, &lines, &credits, &name)?,
        None => {}
    }
    let mut out = io::stdout().lock();
    let beta = serde_json::to_string(&credits.beta).map_err(io::Error::from)?;
    let numbers: Vec<usize> = of_tokens.iter().map(|(line, _)| line.number).collect();
    parts::write_in_order(&mut out, lines.all.len(), |part, out| {
        let lines = &lines.all[part.clone()];
        // Each line that is not the tokens of a rollout has a credit.
        let first = lines.first().map_or(0, |line| numbers.partition_point(|number| *number < line.number));
        let (mut scattered, mut credits) = (scattered[first..].iter(), credits.lines[part.start - first..].iter());
        for line in lines {
            if line.tokens().is_none() {
                credits.next().map_or(Ok(()), |credit| render(line.text, credit, &beta, out))?;
            } else {
                scattered.next().map_or(Ok(()), |rollout| tokens::render(line.text, &rollout.advantages, out))?;
            }
        }
        Ok(())
    })?;
    if let Some(objective) = objective {
        writeln!(out, "{objective}")?;
    }
    out.flush()?;
    Ok(Status::Done)
}

/// The refusal with the number of its line in the file, which counts blank lines too.
fn refused(error: CreditError, lines: &Lines<'_>, file: &str) -> Failure {
    let number = |entry: usize| {
        let line = entry.checked_sub(1).and_then(|index| lines.scored().nth(index));
        line.map_or(entry, |(line, _)| line.number)
    };
    let error = error.map_lines(number);
    let problem = Problem::input("credit", error.refusal.to_string());
    match error.line {
        Some(line) => problem.file(file).at(line as u64, 1).into(),
        None => problem.hint("`holotype credit --help` lists the options").into(),
    }
}

/// Appends the credit to the members of a line.
fn render(text: &str, credit: &Credit, beta: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let members = text.strip_suffix('}').unwrap_or(text).trim_end();
    out.extend_from_slice(members.as_bytes());
    if let Some(write) = &credit.write {
        member(",\"delta\":", write.delta, out)?;
        member(",\"delta_hat\":", write.delta_hat, out)?;
        member(",\"log_rho\":", write.log_rho, out)?;
        out.extend_from_slice(b",\"beta\":");
        out.extend_from_slice(beta.as_bytes());
        member(",\"gate\":", write.gate, out)?;
        member(",\"advantage\":", write.advantage, out)?;
        member(",\"smoothed\":", write.smoothed, out)?;
    }
    member(",\"trajectory_advantage\":", credit.trajectory_advantage, out)?;
    if let Some(write) = &credit.write {
        member(",\"token_advantage\":", write.token_advantage, out)?;
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn member(name: &str, value: f64, out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(name.as_bytes());
    Ok(serde_json::to_writer(out, &value)?)
}

/// Sets the credit of every item named: the mean over rollouts of its mean smoothed advantage in each. An item that
/// has this credit already is left alone, so that the command can be run again.
fn store(db: &Path, lines: &Lines<'_>, credits: &Credits, file: &str) -> Result<(), Failure> {
    let scored = lines.scored().zip(&credits.lines);
    let scored = scored.filter_map(|((line, write), credit)| Some((line.item?, write, credit.write?.smoothed)));
    let database = database::to_write(db)?;
    let mut transaction = database.begin()?;
    let mut changed = 0;
    for (item, (mean, count)) in mean_credit(scored) {
        let id = transaction.find(&Target::Key(item.to_owned())).map_err(|error| no_item(error, item, lines, file))?;
        let now = transaction.attributes(id)?;
        if (now.credit.to_bits(), now.credit_count) != (mean.to_bits(), count) {
            transaction.mark(id, Mark::Credit(mean, count), None)?;
            changed += 1;
        }
    }
    if changed > 0 {
        transaction.commit(Durability::Sync)?;
    } else {
        drop(transaction);
    }
    database::close(database)?;
    database::note(&format!("the credit of {} changed", counted(changed, "items")));
    Ok(())
}

fn no_item(error: holotype::Error, item: &str, lines: &Lines<'_>, file: &str) -> Problem {
    let problem = Problem::from(error).hint("`item` is the key of an item of the database").file(file);
    match lines.scored().find(|(line, _)| line.item == Some(item)) {
        Some((line, _)) => problem.at(line.number as u64, 1),
        None => problem,
    }
}

/// Keeps the rollouts that the database does not have, and sets the credit of items over all that it has then.
fn keep(db: &Path, lines: &Lines<'_>, options: &CreditOptions, file: &str) -> Result<(), Failure> {
    let database = database::to_write(db)?;
    let mut transaction = database.begin()?;
    for item in lines.scored().filter_map(|(line, _)| line.item) {
        transaction.find(&Target::Key(item.to_owned())).map_err(|error| no_item(error, item, lines, file))?;
    }
    let mut kept = 0;
    for rollout in rollouts(lines).into_values() {
        kept += u64::from(transaction.keep_rollout(&rollout)?);
    }
    let changed = transaction.credit_rollouts(options)?.len();
    if transaction.is_empty() {
        drop(transaction);
    } else {
        transaction.commit(Durability::Sync)?;
    }
    database::close(database)?;
    let (kept, changed) = (counted(kept, "rollouts"), counted(changed as u64, "items"));
    database::note(&format!("{kept} kept; the credit of {changed} changed"));
    Ok(())
}

/// The rollouts of some lines. Texts of a whole rollout may stand on any of its lines.
fn rollouts<'t>(lines: &Lines<'t>) -> BTreeMap<(&'t str, &'t str), Rollout> {
    let mut found: BTreeMap<(&str, &str), Rollout> = BTreeMap::new();
    for (line, write) in lines.scored() {
        let rollout = found.entry((write.group, write.rollout)).or_insert_with(|| Rollout {
            group: write.group.to_owned(),
            rollout: write.rollout.to_owned(),
            ..Rollout::default()
        });
        if let Some(reward) = write.reward {
            rollout.reward = reward;
        }
        rollout.template = rollout.template.take().or_else(|| write.template.map(str::to_owned));
        let texts = line.texts();
        for (known, text) in [
            (&mut rollout.question, texts.map(|texts| &texts.question)),
            (&mut rollout.outcome, texts.map(|texts| &texts.outcome)),
        ] {
            if known.is_empty() {
                known.extend(text.map(String::as_str));
            }
        }
        if let Some((step, scores)) = write.scored {
            let texts = texts.map(|texts| texts.step.clone()).unwrap_or_default();
            let item = line.item.map(str::to_owned);
            rollout.steps.push(RolloutStep { step, texts, scores: Some(scores), item });
        }
    }
    found.values_mut().for_each(|rollout| rollout.steps.sort_by_key(|step| step.step));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_members() {
        let text =
            r#"{"group":"g","rollout":7,"step":0,"reward":0.5,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9, "x":[1] }"#;
        let lines = lines::read(text, "f").unwrap();
        let credits = credit(&lines.writes, &CreditOptions::default()).unwrap();
        let mut out = Vec::new();
        render(lines.all[0].text, &credits.lines[0], &credits.beta.to_string(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.starts_with(text.strip_suffix(" }").unwrap()), "{out}");
        let object: serde_json::Value = serde_json::from_str(&out).unwrap();
        let names: Vec<&str> = object.as_object().unwrap().keys().skip(8).map(String::as_str).collect();
        assert_eq!(
            names.join(" "),
            "delta delta_hat log_rho beta gate advantage smoothed trajectory_advantage token_advantage"
        );
        assert_eq!(object["beta"], 20.0);
    }

    #[test]
    fn a_refusal_names_the_line_of_the_file() {
        let line = "{\"group\":\"g\",\"rollout\":0,\"step\":0,\"reward\":0.5,\"s_prev\":-2,\"s_now\":-1,\"log_h\":-1}";
        let text = format!("\n{line}\n\n{line}\n");
        let lines = lines::read(&text, "f").unwrap();
        let error = credit(&lines.writes, &CreditOptions::default()).unwrap_err();
        let Failure::Problem(problem) = refused(error, &lines, "f") else { panic!("a problem") };
        assert_eq!((problem.about.line, problem.about.file.as_deref()), (Some(4), Some("f")));
        assert!(problem.message.contains("already has step 0 on line 2"), "{}", problem.message);
    }
}
