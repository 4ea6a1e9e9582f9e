//! Turns prompts into one token tree, cuts it into chunks and runs them on the one thread that owns the model.
//! Knows `model` alone.

mod cancel;
mod run;
mod tree;
mod work;
mod worker;

pub use cancel::{Cancel, Stop};
pub use run::run;
pub use tree::{Node, NodeId, TokenTree};
pub use work::{EngineError, Prompt, Read, Reading};
pub use worker::Engine;
