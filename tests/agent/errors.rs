//! Chapter 9: errors, each with its code, source and message.
