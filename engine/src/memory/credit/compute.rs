//! Eqs. 3, 6 to 8, 10 to 15 and 17 over all lines of a call.
//!
//! Groups and rollouts are interned and ranked by name, so that every later step sorts integers. The writes stand by
//! (rollout, step), for what runs along a rollout; those of a group are next to each other then, and its siblings are
//! an order of them by (step, rollout).

use super::error::{CreditError, Refusal};
use super::options::{CreditOptions, Deviation};
use super::write::{Scores, Write};
use std::collections::{BTreeMap, HashMap};

/// Numbers beyond this could overflow when squared and summed.
const MAX_MAGNITUDE: f64 = 1e100;

/// The credit of one memory write.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WriteCredit {
    /// `D`: the utility of the update (eqs. 6, 7).
    pub delta: f64,
    /// `D^`: `D` standardised among the writes of the group at this step (eq. 8).
    pub delta_hat: f64,
    /// `log rho`: hindsight relevance, centred on the siblings (eq. 10) and clipped (A.4).
    pub log_rho: f64,
    /// `G` (eq. 11), from 0 to 1.
    pub gate: f64,
    /// `A = G D^` after the success mask (eqs. 12, 13).
    pub advantage: f64,
    /// `A~`: the advantage smoothed backward along the rollout (eq. 14).
    pub smoothed: f64,
    /// `A^T + lambda A~`: the advantage of the tokens of the write (eq. 15).
    pub token_advantage: f64,
}

/// The credit of one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credit {
    /// `A^T` of the line's rollout (eq. 3), which is also the advantage of its tokens outside memory writes.
    pub trajectory_advantage: f64,
    /// The credit of the line's write; `None` on a line that only gives a reward.
    pub write: Option<WriteCredit>,
}

/// The credit of every line of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Credits {
    /// `beta_eff` (eq. 17), one for the call.
    pub beta: f64,
    /// One credit per line, in the order given.
    pub lines: Vec<Credit>,
}

/// Computes the credit of every memory write.
///
/// ```
/// use holotype::credit::{CreditOptions, Scores, Write, credit};
///
/// let scores = |s_now, log_h| Scores { s_prev: -2.0, s_now, log_h: Some(log_h) };
/// let writes = [
///     Write::new("question 1", "a", 0, scores(-1.0, -0.5)).reward(1.0),
///     Write::new("question 1", "b", 0, scores(-2.5, -1.5)).reward(0.0),
/// ];
/// let credits = credit(&writes, &CreditOptions::default())?;
/// let [good, bad] = [0, 1].map(|line: usize| credits.lines[line].write.expect("a write"));
/// assert!(good.advantage > 0.0 && bad.advantage < 0.0);
/// # Ok::<(), holotype::credit::CreditError>(())
/// ```
///
/// # Errors
///
/// In this order: an option out of range; the first line with a number that is not finite or beyond 1e100; the first
/// with scores of another template; the first with a step or reward line that its rollout already has; the first with
/// another reward; the first of a rollout without one.
pub fn credit(writes: &[Write<'_>], options: &CreditOptions) -> Result<Credits, CreditError> {
    options.check()?;
    for (index, write) in writes.iter().enumerate() {
        check(write).map_err(|refusal| CreditError::at(index + 1, refusal))?;
    }
    refuse_other_templates(writes)?;
    let plan = Plan::of(writes)?;
    let advantages = plan.trajectory_advantages(options);
    let mut rows = plan.rows(writes);
    let siblings = siblings_of(&rows);
    standardise_siblings(&mut rows, &siblings, options);
    let beta = sharpness(&mut rows, &siblings, options);
    for row in &mut rows {
        let (sign, credit) = (signum(row.credit.delta_hat), &mut row.credit);
        credit.gate = if options.gate { sigmoid(beta * (sign * credit.log_rho - options.tau_rho)) } else { 1.0 };
        credit.advantage = credit.gate * credit.delta_hat;
        let success = options.success.is_some_and(|least| plan.rewards[row.rollout as usize] >= least);
        if success && credit.advantage < 0.0 {
            credit.advantage = 0.0;
        }
    }
    smooth(&mut rows, options.smoothing);
    let of_line = |rollout: &u32| Credit { trajectory_advantage: advantages[*rollout as usize], write: None };
    let mut lines: Vec<Credit> = plan.rollout_of.iter().map(of_line).collect();
    for mut row in rows {
        let line = &mut lines[row.line as usize];
        row.credit.token_advantage = line.trajectory_advantage + options.lambda * row.credit.smoothed;
        line.write = Some(row.credit);
    }
    Ok(Credits { beta, lines })
}

/// The utility of each item and the number of rollouts it rests on: the mean over rollouts of its mean smoothed credit
/// in each. `credited` are items with the line of their write and its smoothed credit; their order changes no bit.
pub fn mean_credit<'l, K: Ord + Copy>(
    credited: impl Iterator<Item = (K, &'l Write<'l>, f64)>,
) -> BTreeMap<K, (f32, u32)> {
    let mut credited: Vec<(K, &Write<'_>, f64)> = credited.collect();
    let step = |write: &Write<'_>| write.scored.map(|(step, _)| step);
    credited.sort_by(|a, b| (a.0, a.1.group, a.1.rollout, step(a.1)).cmp(&(b.0, b.1.group, b.1.rollout, step(b.1))));
    let of_item = |of_item: &[(K, &Write<'_>, f64)]| {
        let rollouts = of_item.chunk_by(|a, b| (a.1.group, a.1.rollout) == (b.1.group, b.1.rollout));
        let mean = |rollout: &[(K, &Write<'_>, f64)]| {
            rollout.iter().map(|(.., value)| value).sum::<f64>() / rollout.len() as f64
        };
        let (sum, count) = rollouts.fold((0.0, 0_u32), |(sum, count), rollout| (sum + mean(rollout), count + 1));
        Some((of_item.first()?.0, ((sum / f64::from(count)) as f32, count)))
    };
    credited.chunk_by(|a, b| a.0 == b.0).filter_map(of_item).collect()
}

/// Refuses the first line, in the order given, whose template is not that of the first line with one.
fn refuse_other_templates(writes: &[Write<'_>]) -> Result<(), CreditError> {
    let mut stated = writes.iter().enumerate().filter_map(|(line, write)| Some((line, write.template?)));
    let Some((earlier, earlier_template)) = stated.next() else { return Ok(()) };
    let Some((line, template)) = stated.find(|(_, template)| *template != earlier_template) else { return Ok(()) };
    let (template, earlier_template) = (template.to_owned(), earlier_template.to_owned());
    let refusal = Refusal::TwoTemplates { template, earlier_template, earlier: earlier + 1 };
    Err(CreditError::at(line + 1, refusal))
}

fn check(write: &Write<'_>) -> Result<(), Refusal> {
    let number = |field, value: f64| match value {
        value if !value.is_finite() => Err(Refusal::NotFinite { field, value }),
        value if value.abs() > MAX_MAGNITUDE => Err(Refusal::TooLarge { field, value }),
        _ => Ok(()),
    };
    if let Some(reward) = write.reward {
        number("reward", reward)?;
    }
    match write.scored {
        Some((_, Scores { s_prev, s_now, log_h })) => {
            number("s_prev", s_prev)?;
            number("s_now", s_now)?;
            log_h.map_or(Ok(()), |log_h| number("log_h", log_h))
        }
        None if write.reward.is_none() => Err(Refusal::Empty),
        None => Ok(()),
    }
}

/// A write on its way through the equations.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Rank of its group.
    group: u32,
    /// Rank of its rollout among all rollouts.
    rollout: u32,
    /// Index of its line.
    line: u32,
    step: u64,
    log_h: Option<f64>,
    credit: WriteCredit,
}

/// Groups and rollouts by rank: groups by name, rollouts by (group, name).
struct Plan {
    /// Rank of the rollout of each line.
    rollout_of: Vec<u32>,
    /// Rank of the group of each rollout.
    group_of: Vec<u32>,
    /// Reward of each rollout.
    rewards: Vec<f64>,
    /// The lines with a write, by (rollout, step).
    order: Vec<Place>,
}

/// The place of a line: the rank of its rollout, its step, and its index, so that they compare as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u128);

impl Place {
    fn new(rollout: u32, step: u64, line: usize) -> Place {
        Place(u128::from(rollout) << 96 | u128::from(step) << 32 | line as u128)
    }

    fn line(self) -> usize {
        self.0 as u32 as usize
    }

    /// True for two lines of one rollout and step.
    fn is_twin(self, other: Place) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// Groups and rollouts by their first line.
#[derive(Default)]
struct Names<'w> {
    groups: HashMap<&'w str, u32>,
    rollouts: HashMap<(u32, &'w str), u32>,
    /// The group of each rollout, and its name.
    of_rollout: Vec<(u32, &'w str)>,
}

impl<'w> Names<'w> {
    /// The number of the rollout of each line.
    fn of(writes: &[Write<'w>]) -> (Names<'w>, Vec<u32>) {
        let mut names = Names::default();
        let mut numbers: Vec<u32> = Vec::with_capacity(writes.len());
        let mut before: Option<&Write<'w>> = None;
        for write in writes {
            // Lines of one rollout mostly follow each other, and those of one group.
            let of_group = before.filter(|before| before.group == write.group).and(numbers.last().copied());
            let number = match of_group.filter(|_| before.is_some_and(|before| before.rollout == write.rollout)) {
                Some(same) => same,
                None => names.number(write, of_group),
            };
            numbers.push(number);
            before = Some(write);
        }
        (names, numbers)
    }

    fn number(&mut self, write: &Write<'w>, of_group: Option<u32>) -> u32 {
        let next = self.groups.len() as u32;
        let group = match of_group.and_then(|rollout| self.of_rollout.get(rollout as usize)) {
            Some((group, _)) => *group,
            None => *self.groups.entry(write.group).or_insert(next),
        };
        *self.rollouts.entry((group, write.rollout)).or_insert_with(|| {
            self.of_rollout.push((group, write.rollout));
            self.of_rollout.len() as u32 - 1
        })
    }

    /// The rank of each rollout by (group, name), and by rank the rank of its group.
    fn ranks(&self) -> (Vec<u32>, Vec<u32>) {
        let mut groups: Vec<(&str, u32)> = self.groups.iter().map(|(name, group)| (*name, *group)).collect();
        groups.sort_unstable();
        let mut rank_of_group = vec![0; groups.len()];
        for (rank, (_, group)) in (0..).zip(&groups) {
            rank_of_group[*group as usize] = rank;
        }
        let ranked =
            |(number, (group, name)): (usize, &(u32, &'w str))| (rank_of_group[*group as usize], *name, number);
        let mut rollouts: Vec<(u32, &str, usize)> = self.of_rollout.iter().enumerate().map(ranked).collect();
        rollouts.sort_unstable();
        let mut rank_of = vec![0; rollouts.len()];
        for (rank, (.., number)) in (0..).zip(&rollouts) {
            rank_of[*number] = rank;
        }
        (rank_of, rollouts.into_iter().map(|(group, ..)| group).collect())
    }
}

impl Plan {
    fn of(writes: &[Write<'_>]) -> Result<Plan, CreditError> {
        let (names, mut rollout_of) = Names::of(writes);
        let (rank_of, group_of) = names.ranks();
        rollout_of.iter_mut().for_each(|number| *number = rank_of[*number as usize]);
        let (mut order, mut others) = (Vec::with_capacity(writes.len()), Vec::new());
        for (line, (write, rollout)) in writes.iter().zip(&rollout_of).enumerate() {
            match write.scored {
                Some((step, _)) => order.push(Place::new(*rollout, step, line)),
                None => others.push(Place::new(*rollout, 0, line)),
            }
        }
        // Files mostly are in order, at least in parts, of which a stable sort makes use.
        order.sort();
        others.sort();
        refuse_duplicates(writes, &order, &others)?;
        let rewards = rewards_of(writes, &rollout_of, rank_of.len())?;
        Ok(Plan { rollout_of, group_of, rewards, order })
    }

    /// Eq. 3, by rank of rollout.
    fn trajectory_advantages(&self, options: &CreditOptions) -> Vec<f64> {
        let mut advantages = Vec::with_capacity(self.rewards.len());
        let mut start = 0;
        for group in self.group_of.chunk_by(|a, b| a == b) {
            let rewards = &self.rewards[start..start + group.len()];
            let spread = Spread::of(rewards.iter().copied(), options.deviation);
            advantages.extend(rewards.iter().map(|reward| spread.standardise(*reward, options.epsilon)));
            start += group.len();
        }
        advantages
    }

    /// The writes by (rollout, step).
    fn rows(&self, writes: &[Write<'_>]) -> Vec<Row> {
        let row = |place: &Place| {
            let line = place.line();
            let (step, scores) = writes[line].scored?;
            let rollout = self.rollout_of[line];
            let credit = WriteCredit { delta: scores.s_now - scores.s_prev, ..WriteCredit::default() };
            let group = self.group_of[rollout as usize];
            Some(Row { group, rollout, line: line as u32, step, log_h: scores.log_h, credit })
        };
        self.order.iter().filter_map(row).collect()
    }
}

/// The places of rows by (group, step, rollout), of rows by (rollout, step).
fn siblings_of(rows: &[Row]) -> Vec<u32> {
    let mut siblings: Vec<u32> = (0..rows.len() as u32).collect();
    let mut rest = siblings.as_mut_slice();
    for group in rows.chunk_by(|a, b| a.group == b.group) {
        let (of_group, others) = rest.split_at_mut(group.len());
        of_group.sort_by_key(|row| rows[*row as usize].step);
        rest = others;
    }
    siblings
}

/// Refuses the first line, in the order given, whose write or reward line an earlier line has.
fn refuse_duplicates(writes: &[Write<'_>], order: &[Place], others: &[Place]) -> Result<(), CreditError> {
    let twins = [order, others].into_iter().flat_map(|lines| lines.windows(2)).filter(|pair| pair[0].is_twin(pair[1]));
    let first = twins.map(|pair| [pair[0].line(), pair[1].line()]).min_by_key(|pair| pair[1]);
    let Some([earlier, line]) = first else { return Ok(()) };
    let write = &writes[line];
    let (group, rollout, earlier) = (write.group.to_owned(), write.rollout.to_owned(), earlier + 1);
    let refusal = match write.scored {
        Some((step, _)) => Refusal::DuplicateWrite { group, rollout, step, earlier },
        None => Refusal::DuplicateReward { group, rollout, earlier },
    };
    Err(CreditError::at(line + 1, refusal))
}

/// The reward of each rollout.
fn rewards_of(writes: &[Write<'_>], rollout_of: &[u32], rollouts: usize) -> Result<Vec<f64>, CreditError> {
    let mut found: Vec<Option<(f64, usize)>> = vec![None; rollouts];
    let owned = |write: &Write<'_>| (write.group.to_owned(), write.rollout.to_owned());
    for (index, (write, rollout)) in writes.iter().zip(rollout_of).enumerate() {
        let Some(reward) = write.reward else { continue };
        let (earlier_reward, earlier) = *found[*rollout as usize].get_or_insert((reward, index + 1));
        if earlier_reward != reward {
            let (group, rollout) = owned(write);
            let refusal = Refusal::TwoRewards { group, rollout, reward, earlier_reward, earlier };
            return Err(CreditError::at(index + 1, refusal));
        }
    }
    if let Some(line) = rollout_of.iter().position(|rollout| found[*rollout as usize].is_none()) {
        let (group, rollout) = owned(&writes[line]);
        return Err(CreditError::at(line + 1, Refusal::NoReward { group, rollout }));
    }
    Ok(found.into_iter().flatten().map(|(reward, _)| reward).collect())
}

/// Eqs. 8 and 10, unclipped, over siblings by (group, step, rollout).
fn standardise_siblings(rows: &mut [Row], siblings: &[u32], options: &CreditOptions) {
    let of = |row: &u32| *row as usize;
    let mut rest = siblings;
    while let Some(first) = rest.first().map(|row| rows[of(row)]) {
        let is_sibling = |row: &&u32| (rows[of(row)].group, rows[of(row)].step) == (first.group, first.step);
        let (these, others) = rest.split_at(rest.iter().take_while(is_sibling).count());
        let deltas = Spread::of(these.iter().map(|row| rows[of(row)].credit.delta), options.deviation);
        let hindsight = Spread::of(these.iter().filter_map(|row| rows[of(row)].log_h), options.deviation);
        for row in these {
            let row = &mut rows[of(row)];
            row.credit.delta_hat = deltas.standardise(row.credit.delta, options.epsilon);
            row.credit.log_rho = row.log_h.map_or(0.0, |log_h| hindsight.centre(log_h));
        }
        rest = others;
    }
}

/// Clips `log rho` and gives `beta` of eq. 17.
fn sharpness(rows: &mut [Row], siblings: &[u32], options: &CreditOptions) -> f64 {
    let deviation = |rows: &[Row]| {
        let written = siblings.iter().map(|row| &rows[*row as usize]).filter(|row| row.log_h.is_some());
        Spread::of(written.map(|row| row.credit.log_rho), options.deviation).deviation
    };
    let before = options.beta_before_clipping.then(|| deviation(rows));
    let (low, high) = (options.rho_range.0.ln(), options.rho_range.1.ln());
    rows.iter_mut().for_each(|row| row.credit.log_rho = row.credit.log_rho.clamp(low, high));
    let deviation = before.unwrap_or_else(|| deviation(rows));
    (options.calibration / (deviation + options.epsilon)).clamp(options.beta_range.0, options.beta_range.1)
}

/// Eq. 14 over rows by (rollout, step).
fn smooth(rows: &mut [Row], alpha: Option<f64>) {
    let alpha = alpha.unwrap_or(1.0);
    for rollout in rows.chunk_by_mut(|a, b| a.rollout == b.rollout) {
        let mut later: Option<f64> = None;
        for row in rollout.iter_mut().rev() {
            let own = row.credit.advantage;
            row.credit.smoothed = later.map_or(own, |later| alpha * own + (1.0 - alpha) * later);
            later = Some(row.credit.smoothed);
        }
    }
}

/// Mean and standard deviation of some values.
struct Spread {
    mean: f64,
    deviation: f64,
    /// All values are the same: standardised and centred they are exactly 0, whatever the mean was rounded to.
    flat: bool,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64> + Clone, deviation: Deviation) -> Spread {
        let (mut count, mut sum, mut least, mut most) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for value in values.clone() {
            count += 1.0;
            sum += value;
            (least, most) = (value.min(least), value.max(most));
        }
        if least >= most {
            return Spread { mean: least, deviation: 0.0, flat: true };
        }
        let mean = sum / count;
        let squares: f64 = values.map(|value| (value - mean) * (value - mean)).sum();
        let divisor = match deviation {
            Deviation::Population => count,
            Deviation::Sample => count - 1.0,
        };
        Spread { mean, deviation: (squares / divisor).sqrt(), flat: false }
    }

    fn centre(&self, value: f64) -> f64 {
        if self.flat { 0.0 } else { value - self.mean }
    }

    fn standardise(&self, value: f64, epsilon: f64) -> f64 {
        if self.flat { 0.0 } else { (value - self.mean) / (self.deviation + epsilon) }
    }
}

/// The sign, with `sgn(0) = 0`.
fn signum(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
