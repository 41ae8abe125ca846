//! Tracked figures: what `docs/performance.md` records from release to release, and the comparison of two builds.
//!
//! `history` runs the tracked benches on data made here and prints one line per figure; `--append FILE` adds a row for
//! each to the table at the end of FILE. `compare` runs the same benches of another build and of this one in turn, and
//! prints the median ratio of the pairs with its interval.
//!
//! Each bench runs as a process of its own. A figure is one number of one printed line.

use crate::Result;
use crate::measure::{median_of, round};
use crate::smoke::neighbours;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
pub(crate) struct HistoryArguments {
    /// The page with the table of figures; a row is appended for each figure.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
    /// The name of the source state in the rows, such as an abbreviated commit.
    #[arg(long, default_value = concat!("v", env!("CARGO_PKG_VERSION")))]
    commit: String,
}

#[derive(clap::Args)]
pub(crate) struct CompareArguments {
    /// The `holotype-bench` of the other build.
    before: PathBuf,
    /// Pairs of runs. The two builds take turns in going first.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..))]
    pairs: u32,
    /// Only figures whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
}

/// A tracked figure: the value `value` of the one line of `bench` that has all the values of `line`.
struct Figure {
    name: &'static str,
    bench: usize,
    line: &'static [(&'static str, &'static str)],
    value: &'static str,
    /// A larger value is better: a rate. Otherwise it is a time.
    is_rate: bool,
}

/// The tracked benches. `DIR` stands for a folder with generated vectors and for the folder that is written in.
const BENCHES: [&[&str]; 4] = [
    &["append", "--count", "2000", "--modes", "single,group100", "--dir", "DIR"],
    &["verify", "--mib", "64", "--rounds", "3"],
    &["language", "--items", "50000", "--questions", "300", "--keep", "DIR"],
    &["vectors", "--base", "DIR/base.npy", "--queries", "DIR/queries.npy", "--truth", "DIR/truth.npy", "--ef", "32"],
];

const FIGURES: [Figure; 9] = [
    rate("durable single commits, records a second", 0, &[("engine", "holotype"), ("mode", "single")], "records_per_s"),
    rate(
        "durable commits of 100, records a second",
        0,
        &[("engine", "holotype"), ("mode", "group100")],
        "records_per_s",
    ),
    rate(
        "verification of records of 1,000 bytes, MiB a second",
        1,
        &[("record_len", "1000"), ("records_per_commit", "100")],
        "verify_mib_s",
    ),
    time(
        "parse, check and plan a recall, us of processor time",
        2,
        &[("phase", "parse, check and plan")],
        "cpu_p50_us",
    ),
    time("find by key, us of processor time", 2, &[("phase", "find by key")], "cpu_p50_us"),
    time("count by status, us of processor time", 2, &[("phase", "count by status")], "cpu_p50_us"),
    time("default recall, us of processor time", 2, &[("phase", "recall")], "cpu_p50_us"),
    rate("vector searches at ef 32, queries a second of processor time", 3, &[("phase", "search")], "cpu_qps"),
    time("build of a vector segment, s of processor time", 3, &[("phase", "build")], "cpu_s"),
];

const fn rate(
    name: &'static str,
    bench: usize,
    line: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Figure {
    Figure { name, bench, line, value, is_rate: true }
}

const fn time(
    name: &'static str,
    bench: usize,
    line: &'static [(&'static str, &'static str)],
    value: &'static str,
) -> Figure {
    Figure { name, bench, line, value, is_rate: false }
}

pub(crate) fn run(arguments: &HistoryArguments) -> Result<()> {
    let mut page = match &arguments.append {
        Some(path) => {
            let opened = OpenOptions::new().append(true).open(path);
            Some(opened.map_err(|error| format!("cannot append to {}: {error}", path.display()))?)
        }
        None => None,
    };
    let dir = tempfile::tempdir_in(".")?;
    neighbours::write(dir.path(), DATA)?;
    let this = std::env::current_exe()?;
    let machine = machine();
    let mut rows = String::new();
    for bench in 0..BENCHES.len() {
        let lines = lines_of(&this, bench, dir.path())?;
        for figure in FIGURES.iter().filter(|figure| figure.bench == bench) {
            let value = figure.of(&lines)?;
            println!("{}", json!({"bench": "history", "figure": figure.name, "value": value, "machine": machine}));
            rows.push_str(&format!("| {} | {machine} | {} | {value} |\n", arguments.commit, figure.name));
        }
    }
    if let Some(page) = &mut page {
        page.write_all(rows.as_bytes())?;
    }
    Ok(())
}

pub(crate) fn compare(arguments: &CompareArguments) -> Result<()> {
    let builds = [arguments.before.canonicalize()?, std::env::current_exe()?];
    // A folder for each build: neither reads a database that the other one wrote.
    let dirs = [tempfile::tempdir_in(".")?, tempfile::tempdir_in(".")?];
    dirs.iter().try_for_each(|dir| neighbours::write(dir.path(), DATA))?;
    for bench in 0..BENCHES.len() {
        let figures: Vec<&Figure> =
            FIGURES.iter().filter(|figure| figure.bench == bench && figure.name.contains(&arguments.only)).collect();
        if figures.is_empty() {
            continue;
        }
        let mut ratios = vec![Vec::new(); figures.len()];
        for pair in 0..arguments.pairs as usize {
            let mut values = [Vec::new(), Vec::new()];
            for build in [pair % 2, (pair + 1) % 2] {
                let lines = lines_of(&builds[build], bench, dirs[build].path())?;
                values[build] = figures.iter().map(|figure| figure.of(&lines)).collect::<Result<_>>()?;
            }
            for (at, figure) in figures.iter().enumerate() {
                let (before, after) = (values[0][at], values[1][at]);
                ratios[at].push(if figure.is_rate { before / after } else { after / before });
            }
        }
        for (figure, ratios) in figures.iter().zip(ratios) {
            let (least, most) = interval_of_median(ratios.clone());
            let line = json!({
                "bench": "compare", "figure": figure.name, "pairs": ratios.len(),
                "cost_ratio": round(median_of(ratios), 3), "interval": [round(least, 3), round(most, 3)],
            });
            println!("{line}");
        }
    }
    Ok(())
}

/// The generated vectors: enough for a segment to be walked, few enough for a run of seconds.
const DATA: neighbours::Size = neighbours::Size { count: 20_000, queries: 200, dim: 64 };

/// Runs a tracked bench of a build.
fn lines_of(build: &Path, bench: usize, dir: &Path) -> Result<Vec<Value>> {
    let dir = dir.display().to_string();
    let arguments = BENCHES[bench].iter().map(|argument| argument.replace("DIR", &dir));
    let output = Command::new(build).args(arguments).stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{} {} ended with {}", build.display(), BENCHES[bench][0], output.status).into());
    }
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().filter(|line| line.starts_with('{')).map(serde_json::from_str).collect::<Result<_, _>>()?)
}

impl Figure {
    fn of(&self, lines: &[Value]) -> Result<f64> {
        let is_value = |line: &Value, name: &str, value: &str| match &line[name] {
            Value::String(text) => text == value,
            other => *other.to_string() == *value,
        };
        let mut matching =
            lines.iter().filter(|line| self.line.iter().all(|(name, value)| is_value(line, name, value)));
        match (matching.next(), matching.next()) {
            (Some(line), None) => {
                line[self.value].as_f64().ok_or_else(|| format!("no number `{}` in {line}", self.value).into())
            }
            (first, _) => {
                let found = if first.is_some() { "several lines" } else { "no line" };
                Err(format!("{found} with {:?} instead of one, for \"{}\"", self.line, self.name).into())
            }
        }
    }
}

/// An interval that contains the true median with a probability of at least 95 %, whatever the distribution: of 15
/// values the fourth smallest and the fourth largest. Of fewer than 6 values it is their whole range.
fn interval_of_median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    // P(at most `rank` of `count` values lie below the median), summed term by term.
    let mut term = 0.5f64.powi(count as i32);
    let (mut tail, mut rank) = (term, 0);
    while tail <= 0.025 && 2 * (rank + 1) < count {
        rank += 1;
        term *= (count + 1 - rank) as f64 / rank as f64;
        tail += term;
    }
    let outside = if tail > 0.025 { rank.saturating_sub(1) } else { rank };
    (values[outside], values[count - 1 - outside])
}

/// The processor's name and the number of cores.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", name.unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_15_values_leaves_three_out_at_each_end() {
        let values: Vec<f64> = (1..=15).rev().map(f64::from).collect();
        assert_eq!(interval_of_median(values), (4.0, 12.0));
        assert_eq!(interval_of_median(vec![2.0, 1.0, 3.0]), (1.0, 3.0));
    }

    #[test]
    fn a_figure_is_read_from_the_one_line_that_matches() {
        let figure = rate("x", 0, &[("mode", "single"), ("size", "1000")], "per_s");
        let line = |mode: &str, size: u32| json!({"mode": mode, "size": size, "per_s": size + 1});
        assert_eq!(figure.of(&[line("single", 200), line("single", 1000)]).unwrap(), 1001.0);
        assert!(figure.of(&[line("single", 200)]).unwrap_err().to_string().contains("no line"));
        let twice = figure.of(&[line("single", 1000), line("single", 1000)]).unwrap_err();
        assert!(twice.to_string().contains("several lines"), "{twice}");
    }
}
