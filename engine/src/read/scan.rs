//! Many items at once: by a list of keys, or all whose keys begin alike.

use crate::Result;
use crate::model::item::ItemId;
use crate::read::snapshot::{Item, Snapshot};
use crate::records::tables;
use holotype_storage::codec;

impl Snapshot {
    /// The items that hold these keys, in the order of the keys; `None` for a key that no item holds.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Item>>> {
        keys.into_iter().map(|key| self.get(key.as_ref())).collect()
    }

    /// The items whose keys begin with `prefix`, in the order of their keys; all items for an empty one. Each is read
    /// when it is pulled, so memory does not grow with their number.
    ///
    /// ```
    /// # use holotype::{Durability, Holotype, NewTrace, Options};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let database = Holotype::create(dir.path().join("memory.holo"), Options::default())?;
    /// # let mut transaction = database.begin()?;
    /// # for key in ["b2", "a1", "b1"] {
    /// #     transaction.record(NewTrace::turn("trip-42", key).key(key))?;
    /// # }
    /// # transaction.commit(Durability::Sync)?;
    /// let snapshot = database.snapshot();
    /// let keys: Vec<String> = snapshot.scan("b").map(|item| Ok(item?.key)).collect::<holotype::Result<_>>()?;
    /// assert_eq!(keys, ["b1", "b2"]);
    /// # Ok::<(), holotype::Error>(())
    /// ```
    pub fn scan<'s>(&'s self, prefix: &str) -> impl Iterator<Item = Result<Item>> + use<'s> {
        self.state.iter(tables::KEY, prefix.as_bytes()).map(|row| {
            let (_, value) = row?;
            self.item(ItemId(codec::decode(&value)?))
        })
    }
}
