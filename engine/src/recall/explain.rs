//! `explain`: the plan of a recall, without running it.

use super::context::Steps;
use super::plan::Plan;
use crate::Result;
use crate::model::plural::counted;
use crate::model::time;
use crate::read::field_filter::hint;
use crate::read::filter::Filter;
use crate::read::snapshot::Snapshot;
use crate::state::reader_position::ReaderPosition;
use holotype_query::plan::{Predicate, Recall};

/// Describes the plan of a recall without running it.
pub(crate) fn explain(snapshot: &Snapshot, recall: &Recall) -> Result<Steps> {
    let snapshot = &snapshot.at(recall.clauses.as_of.as_ref())?;
    let plan = Plan::new(snapshot, recall)?;
    let mut steps = Steps::new();
    let asked = match (&plan.text, &plan.vector) {
        (Some(_), Some(_)) => "text and vector",
        (Some(_), None) => "text",
        (None, Some(_)) => "vector",
        (None, None) => "nothing",
    };
    steps.push(("query".to_owned(), asked.to_owned()));
    steps.push(("reader".to_owned(), describe_reader(&plan.reader_position)));
    steps.push((
        "visible".to_owned(),
        format!("{} of {}", plan.visible.count(), counted(u64::from(snapshot.len()), "items")),
    ));
    if let Some(condition) = &recall.clauses.filter {
        let filter = Filter::new(snapshot, &plan.reader_position);
        let parts: &[Predicate] = match condition {
            Predicate::And(parts) => parts,
            one => std::slice::from_ref(one),
        };
        let mut left = (*plan.visible).clone();
        for (part, from_columns) in filter.cheapest_first(parts)? {
            let read = left.count();
            left = filter.evaluate(part, &left)?;
            let how = match from_columns {
                true => format!("{part}: from columns, leaves {}", left.count()),
                false => format!("{part}: {} read, leaves {}{}", counted(read, "items"), left.count(), hint(part)),
            };
            steps.push(("where".to_owned(), how));
        }
    }
    for exclusion in &plan.exclusions {
        steps.push((format!("exclude {}", exclusion.name), counted(exclusion.items.count(), "items")));
    }
    for stage in &plan.stages {
        let channels: Vec<&str> = stage.channels.iter().map(|channel| channel.as_str()).collect();
        let count = match (stage.count, stage.container_limit) {
            (Some(count), _) => count.to_string(),
            (None, Some(most)) if most < usize::MAX => format!("all of the best {most}"),
            (None, _) => "as many as fit".to_owned(),
        };
        steps.push((
            stage.noun.to_string(),
            format!(
                "by {}, pool {}, rows {count}; {} routable, {} eligible as rows",
                channels.join(", "),
                stage.pool,
                stage.route.count(),
                stage.rows.count()
            ),
        ));
    }
    let w = &plan.weights;
    let mut weights = format!(
        "similarity {}, words {}, recency {}, status {}, source {}, utility {}, context {}, conflict {}",
        w.similarity, w.words, w.recency, w.status, w.source, w.utility, w.context, w.conflict
    );
    if w.return_score != 0.0 {
        weights.push_str(&format!(", return_score {}", w.return_score));
    }
    steps.push(("score".to_owned(), weights));
    Ok(steps)
}

/// The position of the reader in words.
pub(crate) fn describe_reader(reader_position: &ReaderPosition) -> String {
    let reader = &reader_position.reader;
    let mut parts = Vec::new();
    parts.extend(reader.episode.as_ref().map(|episode| format!("episode {episode}")));
    parts.extend(reader.step.map(|step| format!("step {step}")));
    parts.extend(reader.time.map(|micros| format!("time {}", time::format(micros))));
    parts.extend(reader.version.as_ref().map(|version| format!("version {version}")));
    if parts.is_empty() { "unspecified".to_owned() } else { parts.join(", ") }
}
