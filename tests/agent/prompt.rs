//! Chapter 5.3: the system prompt.
