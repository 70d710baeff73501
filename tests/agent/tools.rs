//! Area B: tool calls, and chapters 3.2 and 5.4.
