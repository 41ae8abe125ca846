//! Writing: transactions, the drafts of new items, forgetting and receipts.

mod admission;
pub(crate) mod draft;
pub(crate) mod forget;
pub(crate) mod receipt;
pub(crate) mod transaction;
