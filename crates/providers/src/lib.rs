//! Language models for the YouYou agent.

mod failure;
mod wire;
