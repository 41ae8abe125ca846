//! What an agent's loop calls (HELM 3.1, A.8, Table 11): the `<recall>` to `<memory>` interface, recalls with checked
//! citations, and the schedule of memory operations with its limits. Models are the caller's: they stand behind the
//! traits [`Generate`](cited::Generate) and [`Controller`](controller::Controller).

pub(crate) mod audit;
pub(crate) mod cited;
pub(crate) mod controller;
pub(crate) mod interface;
