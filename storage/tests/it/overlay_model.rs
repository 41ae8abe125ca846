//! Rows as a view shows them are those of a plain ordered map, whatever mixture of puts, deletions,
//! freezes and checkpoints made them; and a copy of a view never changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use holotype_storage::SmallBytes;
use holotype_storage::catalog::{Applied, Catalog, CatalogOptions};
use holotype_storage::features::Access;
use holotype_storage::log::{CommitNo, Lsn};
use holotype_storage::overlay::{Overlay, RowKey, View};
use holotype_storage::vfs::SimVfs;
use proptest::prelude::*;

type Model = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

/// A row given a value, or deleted.
type Change = (u8, Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Vec<u8>, Vec<u8>),
    Delete(u8, Vec<u8>),
    /// Changes under a savepoint, half of them under one within; whether each of the two is kept.
    Attempt(Vec<Change>, bool, bool),
    Freeze,
    Checkpoint,
    FailCheckpoint,
    Copy,
    Reopen,
}

/// Few tables and short keys of few letters, so that rows meet: both ends of what a byte can be.
fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(254), Just(255)], 0..4)
}

fn table() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0_u8), Just(1), Just(255)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (table(), key(), proptest::collection::vec(any::<u8>(), 0..6))
            .prop_map(|(table, key, value)| Step::Put(table, key, value)),
        5 => (table(), key()).prop_map(|(table, key)| Step::Delete(table, key)),
        2 => (proptest::collection::vec((table(), key(), proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40))), 0..8),
            any::<bool>(), any::<bool>()).prop_map(|(changes, outer, inner)| Step::Attempt(changes, outer, inner)),
        1 => Just(Step::Freeze),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::FailCheckpoint),
        1 => Just(Step::Copy),
        1 => Just(Step::Reopen),
    ]
}

type Found = Vec<(Vec<u8>, Vec<u8>)>;

fn found<'a>(rows: impl Iterator<Item = holotype_storage::Result<(Vec<u8>, SmallBytes)>> + 'a) -> Found {
    rows.map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

fn expected(model: &Model, table: u8, holds: impl Fn(&[u8]) -> bool) -> Found {
    let rows = model.iter().filter(|((in_table, key), _)| *in_table == table && holds(key));
    rows.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

fn assert_same(view: &View, model: &Model) {
    for table in [0, 1, 2, 255] {
        assert_eq!(found(view.prefix(table, &[])), expected(model, table, |_| true));
    }
    for ((table, key), value) in model {
        assert_eq!(view.get(*table, key).unwrap().as_deref(), Some(value.as_slice()));
    }
}

fn assert_same_ranges(view: &View, model: &Model, from: &[u8], to: &[u8]) {
    for table in [0, 1, 255] {
        let got = view.get(table, from).unwrap().map(|value| value.to_vec());
        assert_eq!(got, model.get(&(table, from.to_vec())).cloned());
        let prefixed = expected(model, table, |key| key.starts_with(from));
        assert_eq!(found(view.prefix(table, from)), prefixed);
        for lower in [Bound::Unbounded, Bound::Included(from), Bound::Excluded(from)] {
            for upper in [Bound::Unbounded, Bound::Included(to), Bound::Excluded(to)] {
                let within = expected(model, table, |key| {
                    let above = match lower {
                        Bound::Unbounded => true,
                        Bound::Included(bound) => key >= bound,
                        Bound::Excluded(bound) => key > bound,
                    };
                    let below = match upper {
                        Bound::Unbounded => true,
                        Bound::Included(bound) => key <= bound,
                        Bound::Excluded(bound) => key < bound,
                    };
                    above && below
                });
                assert_eq!(found(view.range(table, lower, upper)), within, "{lower:?} to {upper:?}");
            }
        }
    }
}

fn applied(number: u64) -> Applied {
    Applied { position: Lsn(number), commit: CommitNo(number), head: [0; 32], blob: Vec::new() }
}

struct Run {
    disk: SimVfs,
    catalog: Option<Catalog>,
    view: View,
    model: Model,
    /// The model as the catalog has it, and as it will when what is frozen is written.
    stored: Model,
    frozen: Option<(Overlay, Model)>,
    copies: Vec<(View, Model)>,
    checkpoints: u64,
}

const DATABASE: [u8; 16] = [1; 16];

impl Run {
    fn new() -> Self {
        let disk = SimVfs::new();
        let catalog = Catalog::create(&disk, Path::new("/c"), DATABASE, &CatalogOptions::default()).unwrap();
        let view = View::new(Some(catalog.snapshot().unwrap()));
        Self {
            disk,
            catalog: Some(catalog),
            view,
            model: Model::new(),
            stored: Model::new(),
            frozen: None,
            copies: Vec::new(),
            checkpoints: 0,
        }
    }

    fn change(&mut self, changes: &[Change]) {
        for (table, key, value) in changes {
            match value {
                Some(value) => self.take(&Step::Put(*table, key.clone(), value.clone())),
                None => self.take(&Step::Delete(*table, key.clone())),
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Put(table, key, value) => {
                self.view.put(*table, key, value.clone());
                self.model.insert((*table, key.clone()), value.clone());
            }
            Step::Attempt(changes, outer, inner) => {
                let (first, second) = changes.split_at(changes.len() / 2);
                let before = (self.view.active().content_len(), self.model.clone());
                let savepoint = self.view.savepoint();
                self.change(first);
                let within = (self.view.savepoint(), self.model.clone());
                self.change(second);
                if *inner {
                    self.view.release(within.0);
                } else {
                    self.view.roll_back(within.0);
                    self.model = within.1;
                }
                assert_same(&self.view, &self.model);
                if *outer {
                    self.view.release(savepoint);
                } else {
                    self.view.roll_back(savepoint);
                    self.model = before.1;
                    assert_eq!(self.view.active().content_len(), before.0);
                }
            }
            Step::Delete(table, key) => {
                self.view.delete(*table, key);
                self.model.remove(&(*table, key.clone()));
            }
            Step::Freeze => {
                if self.frozen.is_none() && !self.view.active().is_empty() {
                    self.frozen = Some((self.view.freeze(), self.model.clone()));
                }
            }
            Step::Checkpoint => {
                if let (Some((frozen, model)), Some(catalog)) = (self.frozen.take(), &self.catalog) {
                    self.checkpoints += 1;
                    let changes = frozen.iter().map(|(key, value)| (key.clone(), value.cloned()));
                    catalog.checkpoint(changes, &applied(self.checkpoints)).unwrap();
                    self.view.thaw(catalog.snapshot().unwrap());
                    self.stored = model;
                }
            }
            Step::FailCheckpoint => {
                self.frozen = None;
                self.view.unfreeze();
            }
            Step::Copy => self.copies.push((self.view.clone(), self.model.clone())),
            Step::Reopen => {
                // Older snapshots keep the catalog's file open, so they end first.
                self.copies.clear();
                self.frozen = None;
                self.view = View::new(None);
                self.catalog = None;
                let options = CatalogOptions::default();
                let catalog = Catalog::open(&self.disk, Path::new("/c"), DATABASE, &options, Access::Write).unwrap();
                let position = catalog.applied().unwrap().map(|applied| applied.position.0);
                assert_eq!(position.unwrap_or(0), self.checkpoints);
                self.view = View::new(Some(catalog.snapshot().unwrap()));
                self.catalog = Some(catalog);
                self.model = self.stored.clone();
            }
        }
    }
}

/// A view knows which rows changed since the last checkpoint.
#[test]
fn changes_are_told_apart_from_what_is_stored() {
    let mut run = Run::new();
    let told = |run: &Run| {
        let changed = [(1, &b"ab"[..]), (1, b"a"), (1, b""), (1, b"abc"), (1, b"aa"), (1, b"b"), (0, b""), (2, b"")];
        changed.map(|(table, prefix)| run.view.is_changed(table, prefix))
    };
    let (none, some) = ([false; 8], [true, true, true, false, false, false, false, false]);
    let counts = |run: &Run| [run.view.active().count(), run.view.frozen().count()];
    assert_eq!((told(&run), counts(&run)), (none, [0, 0]));
    run.take(&Step::Put(1, b"ab".to_vec(), b"value".to_vec()));
    assert_eq!((told(&run), counts(&run)), (some, [1, 0]));
    assert_eq!((run.view.active().content_len(), run.view.active().is_empty()), (8, false));
    run.take(&Step::Freeze);
    assert_eq!((told(&run), counts(&run)), (some, [0, 1]));
    let before = run.view.base().unwrap().applied().cloned();
    run.take(&Step::Checkpoint);
    assert_eq!((told(&run), counts(&run)), (none, [0, 0]));
    assert_eq!((before, run.view.base().unwrap().applied()), (None, Some(&applied(1))));
    run.take(&Step::Delete(1, b"ab".to_vec()));
    assert_eq!((told(&run), counts(&run)), (some, [1, 0]));
    assert!(View::new(None).base().is_none());
}

/// Bounds between which nothing can lie, over few rows and many.
#[test]
fn bounds_the_wrong_way_round_hold_no_row() {
    let mut view = View::new(None);
    for number in 0..300_u16 {
        view.put(1, number.to_be_bytes(), *b"value");
        let key = |number: u16| number.to_be_bytes();
        for (from, to) in [(number, 0), (200, number / 2), (number, number)] {
            let (low, high) = (key(from), key(to));
            let found = view.range(1, Bound::Excluded(&low), Bound::Excluded(&high)).count();
            assert_eq!(found, usize::from(to.min(number + 1)).saturating_sub(usize::from(from) + 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_an_ordered_map(
        steps in proptest::collection::vec(step(), 1..80),
        bounds in proptest::collection::vec((key(), key()), 4),
    ) {
        let mut run = Run::new();
        for step in &steps {
            run.take(step);
            assert_same(&run.view, &run.model);
        }
        for (from, to) in &bounds {
            assert_same_ranges(&run.view, &run.model, from, to);
        }
        for (copy, model) in &run.copies {
            assert_same(copy, model);
        }
    }

    #[test]
    fn an_overlay_counts_what_it_holds(
        changes in proptest::collection::vec((table(), key(), proptest::option::of(0_usize..9)), 0..60),
    ) {
        let mut overlay = Overlay::new();
        let mut model = BTreeMap::new();
        for (table, key, len) in changes {
            let row = RowKey::new(table, &key);
            match len {
                Some(len) => overlay.put(row.clone(), vec![0; len].into()),
                None => overlay.delete(row.clone()),
            }
            prop_assert_eq!((row.table(), row.key()), (table, key.as_slice()));
            prop_assert_eq!(overlay.get(&row).map(|value| value.map(|value| value.len())), Some(len));
            model.insert((table, key), len);
        }
        let content_len: usize = model.iter().map(|((_, key), len)| 1 + key.len() + len.unwrap_or(0)).sum();
        prop_assert_eq!(overlay.content_len(), content_len);
        prop_assert_eq!(overlay.count(), model.len());
        prop_assert_eq!(overlay.is_empty(), model.is_empty());
        let order: Vec<_> = overlay.iter().map(|(row, _)| (row.table(), row.key().to_vec())).collect();
        prop_assert!(order.iter().eq(model.keys()));
    }
}

#[test]
fn a_view_without_a_catalog_is_its_changes() {
    let mut view = View::new(None);
    assert_eq!(view.get(1, b"a").unwrap(), None);
    assert_eq!(view.prefix(1, b"").count(), 0);
    view.put(1, b"a", *b"one");
    view.put(2, b"a", *b"two");
    view.delete(1, b"b");
    assert_eq!(found(view.prefix(1, b"")), [(b"a".to_vec(), b"one".to_vec())]);
}

/// Views and catalogs are shared between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<View>();
    shared::<Catalog>();
};
