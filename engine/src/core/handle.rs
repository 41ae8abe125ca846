//! The handle to an open database.

use crate::core::Core;
use std::sync::Arc;

/// An open database. Clones share it; dropping the last clone closes it.
#[derive(Clone)]
pub struct Holotype {
    pub(crate) core: Arc<Core>,
    pub(crate) _closer: Arc<Closer>,
}

/// Closes the database when the last handle drops. Background threads hold only the core, so they never delay
/// closing.
pub(crate) struct Closer {
    pub(crate) core: Arc<Core>,
}
