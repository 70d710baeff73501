//! Where models come from: vendors with a key, local servers, and the offline demo.

mod calls;
mod catalog;
mod demo;
mod failure;
mod genai;
mod local;
mod request;
mod response;
mod wire;

pub use self::catalog::{VENDORS, Vendor};
pub use self::demo::{DEMO, DEMO_SMALL, DemoProvider};
pub use self::genai::GenaiProvider;
pub use self::local::{Dialect, LocalProvider, LocalServer};
pub use self::wire::{Line, Service};
