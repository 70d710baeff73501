//! Chapter 7: envelope, numbering, logs, subscribers.
