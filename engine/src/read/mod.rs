//! Reading: snapshots, items as rows, predicates, and the values that statements compare.

pub mod answer;
pub mod cell;
pub(crate) mod citations;
pub(crate) mod cite;
pub(crate) mod container_rows;
pub(crate) mod controller;
pub(crate) mod escalation;
pub(crate) mod field_filter;
pub(crate) mod fields;
pub(crate) mod filter;
pub(crate) mod filter_sets;
pub(crate) mod glob;
pub(crate) mod guidance;
pub(crate) mod item_attributes;
pub(crate) mod item_view;
pub(crate) mod key_lookup;
pub(crate) mod limits;
pub(crate) mod near_answers;
pub(crate) mod nearest;
pub(crate) mod page;
pub(crate) mod resolve;
pub(crate) mod row_cells;
pub(crate) mod scan;
pub(crate) mod snapshot;
pub mod typed;
