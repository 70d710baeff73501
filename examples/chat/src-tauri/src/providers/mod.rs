//! Where models come from: vendors with a key, local servers, and the offline demo.

mod catalog;
mod failure;
mod genai;
mod request;
mod response;
mod wire;

pub use self::catalog::{VENDORS, Vendor};
pub use self::genai::GenaiProvider;
pub use self::wire::{Service, client};
