//! Language models for the YouYou agent.

mod wire;
