//! Area G, third part: memory, chapters 3.7 and 5.7.
