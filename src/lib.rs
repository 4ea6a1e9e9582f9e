//! `prism-judge`: a judge of persona fidelity that reads label log-scores of an open decoder model.
//!
//! Data walks one way: a front end (`cli`, `server`) calls `service`, which plans inverse prompts (`prism`),
//! runs them as one token tree (`engine`, `model`) and turns the readings into a verdict (`prism`).

pub mod audit;
pub mod cache;
pub mod cli;
pub mod digest;
pub mod engine;
pub mod eval;
pub mod model;
mod near;
pub mod numerics;
pub mod persona;
pub mod prism;
pub mod server;
pub mod service;
pub mod telemetry;
mod watched;
