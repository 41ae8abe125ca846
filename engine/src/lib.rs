//! Embedded database engine for provenance-tracked agent memory.
