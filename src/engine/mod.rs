//! Turns prompts into one token tree, cuts it into chunks and runs them on the one thread that owns the model.
//! Knows `model` alone.

mod cancel;

pub use cancel::{Cancel, Stop};
