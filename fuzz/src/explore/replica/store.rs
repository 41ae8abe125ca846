//! A store in memory that fails: each request waits for its turn, and a number chooses what becomes of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use holotype_replica::store::{Created, Got, Listed, Store, StoreError, Swapped, Tag};

use super::Numbers;

/// Older versions of an object that a stale read may return.
const MAX_STALE: usize = 3;

/// An object and its tag.
type Stored = (Vec<u8>, Tag);

/// A request that changes something.
#[derive(Clone, Debug)]
enum Change {
    Create(String, Vec<u8>),
    Swap(String, Vec<u8>, Option<Tag>),
    Delete(String),
}

#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) objects: BTreeMap<String, Stored>,
    older: BTreeMap<String, Vec<Option<Stored>>>,
    /// Requests that are carried out once more.
    late: Vec<Change>,
    /// Every content of the head, in order.
    pub(super) heads: Vec<Vec<u8>>,
}

/// The store.
#[derive(Debug)]
pub(super) struct FaultyStore {
    numbers: Rc<Numbers>,
    pub(super) content: RefCell<Content>,
    pub(super) faults: Cell<bool>,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    AnswerLost,
    Repeated,
    Stale,
}

/// Returns to the scheduler once.
struct Turn(bool);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Waits for the next turn.
pub(super) fn turn() -> impl Future<Output = ()> {
    Turn(false)
}

impl FaultyStore {
    pub(super) fn new(numbers: Rc<Numbers>) -> Self {
        Self { numbers, content: RefCell::default(), faults: Cell::new(true) }
    }

    fn fate(&self) -> Fate {
        if !self.faults.get() {
            return Fate::Done;
        }
        match self.numbers.below(20) {
            0 | 1 => Fate::Refused,
            2 | 3 => Fate::AnswerLost,
            4 | 5 => Fate::Repeated,
            6 | 7 => Fate::Stale,
            _ => Fate::Done,
        }
    }

    /// Carries out a request that was repeated, now and then.
    pub(super) fn deliver_late(&self) {
        let mut content = self.content.borrow_mut();
        if !content.late.is_empty() && (self.numbers.below(6) == 0 || !self.faults.get()) {
            let at = self.numbers.below(content.late.len() as u64) as usize;
            let change = content.late.swap_remove(at);
            content.apply(&change);
        }
    }

    pub(super) fn has_late(&self) -> bool {
        !self.content.borrow().late.is_empty()
    }

    /// Carries out a change with its fate; the answer is lost with some.
    async fn change(&self, request: &str, key: &str, change: Change) -> Result<Option<Tag>, StoreError> {
        turn().await;
        let fate = self.fate();
        if fate == Fate::Refused {
            return Err(StoreError::new(request, key, "500"));
        }
        let mut content = self.content.borrow_mut();
        let done = content.apply(&change);
        if fate == Fate::Repeated || (fate == Fate::AnswerLost && self.numbers.below(2) == 0) {
            content.late.push(change);
        }
        if fate == Fate::AnswerLost { Err(StoreError::new(request, key, "no answer")) } else { Ok(done) }
    }
}

impl Content {
    /// The tag of the object after a change that was carried out.
    fn apply(&mut self, change: &Change) -> Option<Tag> {
        match change {
            Change::Create(key, _) if self.objects.contains_key(key) => None,
            Change::Create(key, bytes) => Some(self.put(key, bytes)),
            Change::Swap(key, bytes, expected) => {
                let is_expected = self.objects.get(key).map(|(_, tag)| tag) == expected.as_ref();
                is_expected.then(|| self.put(key, bytes))
            }
            Change::Delete(key) => {
                let removed = self.objects.remove(key);
                self.keep(key, removed);
                None
            }
        }
    }

    fn put(&mut self, key: &str, bytes: &[u8]) -> Tag {
        let digest = holotype_storage::proof::leaf_hash(&[0; 8], &[], bytes);
        let tag = Tag(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect());
        let before = self.objects.insert(key.to_owned(), (bytes.to_vec(), tag.clone()));
        self.keep(key, before);
        if key == holotype_replica::head::KEY {
            self.heads.push(bytes.to_vec());
        }
        tag
    }

    fn keep(&mut self, key: &str, before: Option<Stored>) {
        // Objects that never change are not read stale, only missing.
        if key == holotype_replica::head::KEY {
            let older = self.older.entry(key.to_owned()).or_default();
            older.push(before);
            let extra = older.len().saturating_sub(MAX_STALE);
            older.drain(..extra);
        }
    }
}

impl Store for FaultyStore {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    async fn get(&self, key: &str, unless: Option<&Tag>) -> Result<Got, StoreError> {
        turn().await;
        let fate = self.fate();
        if matches!(fate, Fate::Refused | Fate::AnswerLost) {
            return Err(StoreError::new("read", key, "500"));
        }
        let content = self.content.borrow();
        let present = content.objects.get(key).cloned();
        let older = content.older.get(key).filter(|older| fate == Fate::Stale && !older.is_empty());
        let found = match older {
            Some(older) => older[self.numbers.below(older.len() as u64) as usize].clone(),
            None => present,
        };
        Ok(match found {
            Some((_, tag)) if unless == Some(&tag) => Got::Unchanged,
            Some((bytes, tag)) => Got::Object(bytes, tag),
            None => Got::Missing,
        })
    }

    async fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let done = self.change("create", key, Change::Create(key.to_owned(), bytes.to_vec())).await?;
        Ok(if done.is_some() { Created::Stored } else { Created::Exists })
    }

    async fn swap(&self, key: &str, bytes: &[u8], expected: Option<&Tag>) -> Result<Swapped, StoreError> {
        let change = Change::Swap(key.to_owned(), bytes.to_vec(), expected.cloned());
        Ok(self.change("replace", key, change).await?.map_or(Swapped::Changed, Swapped::Stored))
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.change("remove", key, Change::Delete(key.to_owned())).await.map(drop)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        turn().await;
        if self.fate() == Fate::Refused {
            return Err(StoreError::new("list", prefix, "500"));
        }
        let content = self.content.borrow();
        let named = content.objects.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(named.map(|(key, (bytes, _))| Listed { key: key.clone(), len: bytes.len() as u64, age_s: 1 }).collect())
    }
}
