//! Runs prompts on the one thread that owns the model.
//!
//! Callers merge their prompts into a token tree ([`Work`]), take room in a lane and wait. The model thread merges all
//! work into one tree that keeps the keys and values of what it has computed, and runs it chunk by chunk. Tenants share
//! the tree's budget and nothing in it. Knows `model`, and tells `telemetry` how long things took.

mod active;
mod cancel;
mod lane;
mod pack;
mod prefix;
mod queue;
mod realm;
mod scheduler;
mod settings;
mod stats;
mod tree;
mod work;
mod worker;

pub use cancel::{Cancel, Stop};
pub use lane::Lane;
pub use queue::{Overloaded, Pending, Permit};
pub use realm::Realm;
pub use settings::EngineSettings;
pub use stats::{EngineStats, LaneStats};
pub use tree::{Node, NodeData, NodeId, Parent, TokenTree};
pub use work::{Answer, EngineError, Prompt, Read, Reading, Work};
pub use worker::{Engine, Health, run};
