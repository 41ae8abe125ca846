//! Tests of the workspace, and of the fuzz targets as plain functions. One binary a crate: a hundred of them took most
//! of the build.

mod explorer;
mod rot;
mod targets;
mod workspace;
