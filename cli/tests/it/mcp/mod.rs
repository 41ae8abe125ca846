//! `holotype mcp` as its clients meet it: the built program, JSON-RPC lines and HTTP requests, nothing of its insides.

mod chosen;
mod client;
mod documented;
mod http;
mod lifecycle;
mod limits;
mod many;
mod safety;
mod tools;
