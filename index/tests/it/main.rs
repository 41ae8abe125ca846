//! Tests of the index through its public face. One binary a crate: a hundred of them took most of the build.

mod clusters;
mod merge_memory;
mod neighbour_lists;
#[cfg(feature = "shuttle")]
mod schedules;
mod vector_batch;
mod vector_filter;
mod vector_life;
mod vector_logged;
mod vector_recall;
mod vector_segment;
mod vector_signs;
mod vector_twins;
mod vector_walk_matching;
mod words_bm25;
mod words_damage;
mod words_merge;
mod words_model;
mod words_scripts;
mod words_snapshot;
mod words_text;
