//! Tests of the language through its public face. One binary a crate: a hundred of them took most of the build.

mod cases;
mod design;
mod parameters;
mod properties;
mod reference;
mod trees;
