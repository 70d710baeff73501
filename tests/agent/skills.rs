//! Area G, second part: skills, chapters 3.3 and 5.5.
