//! Trying out a store before anything depends on it: whether it keeps the conditions of writes.

use crate::error::{Error, Result};
use crate::store::{Created, Got, Store, Swapped, Tag};

/// Writes, replaces and removes objects below `probe/`, and refuses a store that ignores a condition.
///
/// # Errors
/// [`Error::Unfit`], [`Error::Store`].
pub async fn probe<S: Store>(store: &S, number: u64) -> Result<()> {
    let (created, swapped) = (format!("probe/{number:016x}-created"), format!("probe/{number:016x}-swapped"));
    let probed = try_conditions(store, &created, &swapped).await;
    let removed = (store.delete(&created).await, store.delete(&swapped).await);
    probed?;
    removed.0.and(removed.1)?;
    Ok(())
}

async fn try_conditions<S: Store>(store: &S, created: &str, swapped: &str) -> Result<()> {
    let unfit = |why: &str| Error::Unfit { place: store.place(), why: why.to_owned() };
    if store.create(created, b"one").await? != Created::Stored {
        return Err(unfit("a new object is said to exist"));
    }
    if store.create(created, b"two").await? != Created::Exists {
        return Err(unfit("it replaces an object that was to be created only if missing (If-None-Match)"));
    }
    match store.get(created, None).await? {
        Got::Object(bytes, tag) if bytes == b"one" => {
            if store.get(created, Some(&tag)).await? != Got::Unchanged {
                return Err(unfit("it sends an object that did not change"));
            }
        }
        _ => return Err(unfit("an object reads otherwise than it was written")),
    }
    let Swapped::Stored(first) = store.swap(swapped, b"one", None).await? else {
        return Err(unfit("a new object cannot be written on the condition that it is missing"));
    };
    if store.swap(swapped, b"two", None).await? != Swapped::Changed {
        return Err(unfit("it replaces an object on the condition that it is missing (If-None-Match)"));
    }
    let Swapped::Stored(second) = store.swap(swapped, b"two", Some(&first)).await? else {
        return Err(unfit("an object cannot be replaced on the condition of its tag (If-Match)"));
    };
    for wrong in [&first, &Tag("\"0\"".into())] {
        if wrong == &second || store.swap(swapped, b"three", Some(wrong)).await? != Swapped::Changed {
            return Err(unfit("it replaces an object whose tag is another than the expected one (If-Match)"));
        }
    }
    Ok(())
}
