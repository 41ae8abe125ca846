//! Transformers against references, and the folder of a real model where it is installed.
mod real;
mod reference;
mod tiny;
