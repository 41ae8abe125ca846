//! The lists of items that pages have open: the numbers that a filter selects, newest first.
//!
//! A page asks for a list part by part while it is scrolled. The first part finds the numbers, the others are cut from
//! them. So a part costs the reading of its rows, and rows do not move under a reader while a writer adds others.
//! Numbers are never given twice, so a kept list cannot show another item.

use crate::Result;
use crate::rows::{item_of, rows};
use crate::views::Filter;
use holotype::{ItemId, Snapshot};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Lists that are kept; the oldest goes first.
const MAX_LISTS: usize = 8;

/// The numbers of one list.
#[derive(Debug)]
enum Numbers {
    /// All below this.
    Below(u32),
    /// These, newest first.
    These(Vec<u32>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Numbers::Below(bound) => *bound as usize,
            Numbers::These(found) => found.len(),
        }
    }

    fn part(&self, skip: usize, limit: usize) -> Vec<ItemId> {
        let end = skip.saturating_add(limit).min(self.len());
        let at = |nth: usize| match self {
            Numbers::Below(bound) => bound - 1 - nth as u32,
            Numbers::These(found) => found[nth],
        };
        (skip..end).map(|nth| ItemId(at(nth))).collect()
    }
}

#[derive(Debug)]
struct List {
    commit: u64,
    filter: Filter,
    numbers: Numbers,
}

/// The open lists of a server.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    kept: Mutex<VecDeque<Arc<List>>>,
}

impl Lists {
    /// A part of a list. `commit` is that of the list's first part, for the others.
    pub(crate) fn part(
        &self,
        snapshot: &Snapshot,
        filter: Filter,
        commit: Option<u64>,
        skip: u64,
        limit: u64,
    ) -> Result<Value> {
        let list = match commit.and_then(|commit| self.find(commit, &filter)) {
            Some(list) => list,
            None => self.keep(find(snapshot, filter)?),
        };
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let part = list.numbers.part(size(skip), size(limit));
        let rows: Vec<Value> = part.into_iter().map(|id| row(snapshot, id)).collect();
        Ok(json!({ "commit": list.commit, "total": list.numbers.len(), "skip": skip, "rows": rows }))
    }

    fn find(&self, commit: u64, filter: &Filter) -> Option<Arc<List>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|list| list.commit == commit && list.filter == *filter).cloned()
    }

    fn keep(&self, list: List) -> Arc<List> {
        let list = Arc::new(list);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|known| known.commit != list.commit || known.filter != list.filter);
        kept.push_back(Arc::clone(&list));
        while kept.len() > MAX_LISTS {
            kept.pop_front();
        }
        list
    }
}

fn find(snapshot: &Snapshot, filter: Filter) -> Result<List> {
    let numbers = if filter.is_empty() {
        Numbers::Below(snapshot.len())
    } else {
        let found = rows(snapshot, &format!("find items{filter} order by item desc return item"), filter.params())?;
        Numbers::These(found.iter().filter_map(item_of).map(|id| id.0).collect())
    };
    Ok(List { commit: snapshot.commit(), filter, numbers })
}

/// A row of a list. An item that cannot be read says so, and the others are shown.
fn row(snapshot: &Snapshot, id: ItemId) -> Value {
    match snapshot.item_to_json(id) {
        Ok(mut item) => {
            if let Some(object) = item.as_object_mut() {
                object.remove("fields");
            }
            item
        }
        Err(error) => json!({ "item": id.0, "key": format!("#{}", id.0), "text": error.to_string() }),
    }
}
