//! All that the engine says of a state, held to what the model says of it.

use crate::model::plain::{MPointer, Model};
use holotype::answer::{Output, Table};
use holotype::cell::Cell;
use holotype::query::Params;
use holotype::{Edge, ItemId, Snapshot, Verdict};
use std::collections::BTreeSet;

fn table(snapshot: &Snapshot, script: &str) -> Table {
    match snapshot.query(script, &Params::new()).unwrap().pop() {
        Some(Output::Table(table)) => table,
        other => panic!("{script}: {other:?}"),
    }
}

fn texts(cell: Option<&Cell>) -> Vec<String> {
    match cell {
        None => Vec::new(),
        Some(Cell::List(cells)) => cells.iter().map(ToString::to_string).collect(),
        Some(cell) => vec![cell.to_string()],
    }
}

pub(crate) fn compare(snapshot: &Snapshot, model: &Model) {
    assert_eq!(snapshot.len() as usize, model.items.len());
    let derived = model.derive();
    let listed = table(snapshot, "find items return item, version, episode, page, trust, log_id");
    for (id, (item, of)) in model.items.iter().zip(&derived).enumerate() {
        let found = snapshot.item(ItemId(id as u32)).unwrap();
        let a = &found.attributes;
        assert_eq!(
            (a.kind, a.status, a.source, a.step, a.time, a.support, a.trust),
            (item.kind, of.status, of.source, of.step, of.time, of.support, of.trust),
            "item {id}: {a:?} {item:?}"
        );
        assert_eq!(
            (a.active, a.ungrounded, a.utility, a.has_vector, u64::from(a.tokens), found.content.text()),
            (item.active, item.ungrounded, item.utility, item.vector, item.tokens, item.text.as_str()),
            "item {id}"
        );
        assert_eq!(a.conflict.map(|winner| winner.0 as usize), model.conflict(id, &derived), "conflict of {id}");
        let row = &listed.rows[id];
        assert_eq!(texts(row[1].as_ref()), of.version.iter().cloned().collect::<Vec<_>>(), "version of {id}");
        let episodes = texts(row[2].as_ref());
        let name = |number: &usize| model.episodes[*number].id.clone();
        assert_eq!(episodes.first().cloned(), of.first_episode.as_ref().map(name), "first episode of {id}");
        assert_eq!(episodes.iter().cloned().collect::<BTreeSet<_>>(), of.episodes.iter().map(name).collect(), "{id}");
        let page = item.page.map(|page| model.pages[page].key.clone());
        assert_eq!(texts(row[3].as_ref()), page.into_iter().collect::<Vec<_>>(), "page of {id}");
        if let Some(key) = &item.key {
            assert_eq!(&found.key, key);
        }
        compare_pointers(snapshot, model, id);
    }
    for (key, id) in &model.keys {
        assert_eq!(snapshot.get(key).unwrap().map(|item| item.id.0 as usize), Some(*id), "{key}");
    }
    compare_edges(snapshot, model);
    compare_pages(snapshot, model);
    for (at, episode) in model.episodes.iter().enumerate() {
        let asked =
            snapshot.query(&format!("recall 'fare' in episode '{}'", episode.id), &Params::new()).unwrap().pop();
        let Some(Output::Answer(answer)) = asked else { panic!("no answer") };
        let (step, time, version) = model.reader(at);
        assert_eq!(
            (answer.at.step, answer.at.time, answer.at.version),
            (step, time, version),
            "reader of {}",
            episode.id
        );
    }
}

fn compare_pointers(snapshot: &Snapshot, model: &Model, id: usize) {
    let citations = snapshot.citations(ItemId(id as u32)).unwrap();
    let found: Vec<_> =
        citations.iter().map(|citation| (citation.start, citation.end, citation.text.clone())).collect();
    let wanted: Vec<_> = model.items[id]
        .pointers
        .iter()
        .map(|pointer| match pointer {
            MPointer::Span(target, start, end) => {
                let text = &model.items[*target].text[*start as usize..*end as usize];
                (*start, *end, Some(text.to_owned()))
            }
            MPointer::Page(_) => (0, 0, None),
        })
        .collect();
    assert_eq!(found, wanted, "pointers of {id}");
    assert!(citations.iter().all(|citation| citation.verdict == Verdict::Ok));
}

fn compare_edges(snapshot: &Snapshot, model: &Model) {
    for edge in Edge::ALL {
        for id in 0..model.items.len() {
            let of_type = || model.edges.iter().filter(|(_, byte, _)| *byte == edge.to_byte());
            let mut out: BTreeSet<usize> = of_type().filter(|(from, ..)| *from == id).map(|(_, _, to)| *to).collect();
            let mut back: BTreeSet<usize> = of_type().filter(|(.., to)| *to == id).map(|(from, ..)| *from).collect();
            if edge.is_symmetric() {
                out.extend(&back);
                back.clone_from(&out);
            }
            let ids = |found: Vec<ItemId>| found.into_iter().map(|id| id.0 as usize).collect::<BTreeSet<_>>();
            assert_eq!(ids(snapshot.linked(ItemId(id as u32), *edge).unwrap()), out, "{edge} out of {id}");
            assert_eq!(ids(snapshot.linking(ItemId(id as u32), *edge).unwrap()), back, "{edge} into {id}");
        }
    }
}

fn compare_pages(snapshot: &Snapshot, model: &Model) {
    let found = table(snapshot, "show pages");
    let found: Vec<Vec<String>> =
        found.rows.iter().map(|row| row[..5].iter().map(|cell| texts(cell.as_ref()).concat()).collect()).collect();
    let wanted: Vec<Vec<String>> = model
        .pages
        .iter()
        .map(|page| {
            let tokens: u64 = page.traces.iter().map(|trace| model.items[*trace].tokens).sum();
            let state = if page.summarised { "summarised" } else { "unsummarised" };
            let episode = model.episodes[page.episode].id.clone();
            vec![page.key.clone(), episode, page.traces.len().to_string(), tokens.to_string(), state.to_owned()]
        })
        .collect();
    assert_eq!(found, wanted);
}
