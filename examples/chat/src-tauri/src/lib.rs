//! The backend of the desktop chat: everything concrete that the agent itself does not bring.

pub mod plugins;
pub mod providers;
pub mod settings;
pub mod skills;
pub mod storage;
pub mod tools;
pub mod workspace;
