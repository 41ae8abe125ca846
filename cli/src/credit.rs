//! `holotype credit`: HiMPO advantages of memory writes, from log-probabilities.
//!
//! Every line is printed with its credit appended; its own members stay as they were written. The whole file is read
//! first, because `beta` (eq. 17) depends on all writes. With `--db`, the item of each write gets the mean of its
//! smoothed advantage over rollouts as its utility, all in one commit.

mod lines;

use crate::failure::{Failure, Problem, Status};
use crate::{database, script};
use holotype::credit::{Credit, CreditError, CreditOptions, Credits, Deviation, Write, credit};
use holotype::plural::counted;
use holotype::{Durability, Mark, Target};
use lines::Line;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One JSON object per memory write, or per reward of a rollout; `-` is stdin
    file: PathBuf,
    /// Store the mean smoothed advantage of each `item` as its utility
    #[arg(long, value_name = "DB")]
    db: Option<PathBuf>,
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
    let text = if args.file.as_os_str() == "-" { script::read_stdin()? } else { script::read_file(&args.file)? };
    let name = if args.file.as_os_str() == "-" { "<stdin>".to_owned() } else { args.file.display().to_string() };
    let lines = lines::read(&text, &name)?;
    let writes: Vec<Write<'_>> = lines.iter().map(Line::write).collect();
    let credits = credit(&writes, &args.options()).map_err(|error| refused(error, &lines, &name))?;
    if let Some(db) = &args.db {
        store(db, &lines, &credits, &name)?;
    }
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let mut buffer = Vec::with_capacity(512);
    for (line, credit) in lines.iter().zip(&credits.lines) {
        buffer.clear();
        render(line.text, credit, credits.beta, &mut buffer)?;
        out.write_all(&buffer)?;
    }
    out.flush()?;
    Ok(Status::Done)
}

/// The refusal with the number of its line in the file, which counts blank lines too.
fn refused(error: CreditError, lines: &[Line<'_>], file: &str) -> Failure {
    let number =
        |entry: usize| entry.checked_sub(1).and_then(|index| lines.get(index)).map_or(entry, |line| line.number);
    let error = error.map_lines(number);
    let problem = Problem::input("credit", error.refusal.to_string());
    match error.line {
        Some(line) => problem.file(file).at(line as u64, 1).into(),
        None => problem.hint("`holotype credit --help` lists the options").into(),
    }
}

/// Appends the credit to the members of a line.
fn render(text: &str, credit: &Credit, beta: f64, out: &mut Vec<u8>) -> io::Result<()> {
    let members = text.strip_suffix('}').unwrap_or(text).trim_end();
    out.extend_from_slice(members.as_bytes());
    let mut member = |name: &str, value: f64| {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        serde_json::to_writer(&mut *out, &value)
    };
    if let Some(write) = &credit.write {
        member("delta", write.delta)?;
        member("delta_hat", write.delta_hat)?;
        member("log_rho", write.log_rho)?;
        member("beta", beta)?;
        member("gate", write.gate)?;
        member("advantage", write.advantage)?;
        member("smoothed", write.smoothed)?;
    }
    member("trajectory_advantage", credit.trajectory_advantage)?;
    if let Some(write) = &credit.write {
        member("token_advantage", write.token_advantage)?;
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Sets the utility of every item named: the mean over rollouts of its mean smoothed advantage in each. An item that
/// has this utility already is left alone, so that the command can be run again.
fn store(db: &Path, lines: &[Line<'_>], credits: &Credits, file: &str) -> Result<(), Failure> {
    let scored = lines.iter().zip(&credits.lines);
    let scored = scored.filter_map(|(line, credit)| Some((line.item.as_deref()?, line, credit.write?.smoothed)));
    let mut scored: Vec<(&str, &Line<'_>, f64)> = scored.collect();
    // A canonical order of summation: the order of lines changes no bit.
    scored
        .sort_unstable_by_key(|(item, line, _)| (*item, &line.group, &line.rollout, line.scored.map(|(step, _)| step)));
    let database = database::to_write(db)?;
    let snapshot = database.snapshot();
    let mut transaction = database.begin()?;
    let mut changed = 0;
    for of_item in scored.chunk_by(|a, b| a.0 == b.0) {
        let rollouts = of_item.chunk_by(|a, b| (&a.1.group, &a.1.rollout) == (&b.1.group, &b.1.rollout));
        let means =
            rollouts.map(|rollout| rollout.iter().map(|(_, _, value)| value).sum::<f64>() / rollout.len() as f64);
        let (sum, count) = means.fold((0.0, 0_u32), |(sum, count), mean| (sum + mean, count + 1));
        let utility = (sum / f64::from(count)) as f32;
        let [(item, line, _), ..] = of_item else { continue };
        let id = transaction.find(&Target::Key((*item).to_owned())).map_err(|error| {
            let problem = Problem::from(error).hint("`item` is the key of an item of the database");
            problem.file(file).at(line.number as u64, 1)
        })?;
        let now = snapshot.item(id)?.attributes;
        if (now.utility.to_bits(), now.utility_count) != (utility.to_bits(), count) {
            transaction.mark(id, Mark::Utility(utility, count), None)?;
            changed += 1;
        }
    }
    if changed > 0 {
        transaction.commit(Durability::Sync)?;
    } else {
        drop(transaction);
    }
    database.close()?;
    database::note(&format!("the utility of {} changed", counted(changed, "items")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_members() {
        let text =
            r#"{"group":"g","rollout":7,"step":0,"reward":0.5,"s_prev":-2.1,"s_now":-1.4,"log_h":-0.9, "x":[1] }"#;
        let lines = lines::read(text, "f").unwrap();
        let credits = credit(&[lines[0].write()], &CreditOptions::default()).unwrap();
        let mut out = Vec::new();
        render(lines[0].text, &credits.lines[0], credits.beta, &mut out).unwrap();
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
        let writes: Vec<Write<'_>> = lines.iter().map(Line::write).collect();
        let error = credit(&writes, &CreditOptions::default()).unwrap_err();
        let Failure::Problem(problem) = refused(error, &lines, "f") else { panic!("a problem") };
        assert_eq!((problem.about.line, problem.about.file.as_deref()), (Some(4), Some("f")));
        assert!(problem.message.contains("already has step 0 on line 2"), "{}", problem.message);
    }
}
