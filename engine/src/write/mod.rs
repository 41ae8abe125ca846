//! Writing: transactions, the drafts of new items, bulk loads, forgetting and receipts.

mod admission;
pub(crate) mod bulk;
pub(crate) mod draft;
pub(crate) mod forget;
pub(crate) mod receipt;
pub(crate) mod transaction;
