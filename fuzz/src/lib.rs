//! Fuzz targets of Holotype: one per parser and decoder.
