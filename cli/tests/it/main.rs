//! Tests of the command line, run as a user runs it. One binary a crate: a hundred of them took most of the build.

mod command_line;
mod hooks;
mod import_noise;
mod kill;
mod mcp;
mod readme;
mod unsynced;
