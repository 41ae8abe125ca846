//! `holotype route`: the router of a fleet, a database by which questions find the databases to ask.

use crate::failure::{Failure, Status};
use crate::fleet::{self, Limits};
use crate::render::{self, Format};
use crate::{database, screen};
use holotype::fleet::{RouteOptions, RouteReport};
use holotype::plural::counted;
use serde_json::json;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make the router of a fleet
    Build(Route),
    /// Look again at the databases that were written to, that are new, or that are gone
    Update(Route),
}

#[derive(Debug, clap::Args)]
struct Route {
    /// The databases: a path, or a pattern in quotes, such as 'users/*.holo' or 'teams/**/*.holo'
    fleet: String,
    /// The router, an ordinary database
    router: PathBuf,
    /// Parts that a database is described by, at most: it has about as many as the square root of its vectors
    #[arg(long, value_name = "PARTS", default_value_t = RouteOptions::default().max_parts)]
    parts: usize,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Status, Failure> {
    let (route, is_new) = match &args.action {
        Action::Build(route) => (route, true),
        Action::Update(route) => (route, false),
    };
    let mut fleet = fleet::open(&route.fleet, None, &route.limits)?;
    let options = RouteOptions { max_parts: route.parts };
    let bar = screen::progress("reading databases", fleet.paths().len() as u64, false);
    let mut progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let report = match is_new {
        true => fleet.build_router(&route.router, options, &mut progress),
        false => fleet.update_router(&route.router, options, &mut progress),
    };
    bar.finish_and_clear();
    let report = report.map_err(|error| database::about(&route.router, error))?;
    for failure in &report.failed {
        database::note(&format!("left as it was: {failure}"));
    }
    let failed: Vec<_> = report
        .failed
        .iter()
        .map(|one| json!({"path": one.path.display().to_string(), "code": one.code, "message": one.message}))
        .collect();
    let json = json!({
        "router": route.router.display().to_string(), "added": report.added, "updated": report.updated,
        "removed": report.removed, "unchanged": report.unchanged, "other_spaces": report.other_spaces,
        "erased": report.erased, "failed": failed,
    });
    render::write_fact(&mut io::stdout().lock(), &json, &describe(route, &report), format)?;
    Ok(if report.failed.is_empty() { Status::Done } else { Status::Found })
}

fn describe(route: &Route, report: &RouteReport) -> String {
    let known = counted((report.added + report.updated + report.unchanged) as u64, "databases");
    let mut text = format!(
        "{} is up to date with {known}: {} new, {} written to, {} unchanged, {} gone",
        route.router.display(),
        report.added,
        report.updated,
        report.unchanged,
        report.removed
    );
    if report.other_spaces > 0 {
        text += &format!("; {} have vectors of another space and are known by their words", report.other_spaces);
    }
    if report.erased > 0 {
        text += &format!("; {} erased", counted(report.erased as u64, "items"));
    }
    if !report.failed.is_empty() {
        text += &format!("; {} could not be read", report.failed.len());
    }
    text
}
