//! The client against a server on the loopback interface that misbehaves in each way, and the engine with the client.

mod calls;
mod embeddings;
mod escalation;
mod recorded;
mod roles;
mod server;
