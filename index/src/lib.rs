//! Holotype's vector, word and set indexes: hand-written HNSW, BM25 postings, bitmaps.

pub mod bitmap;
