//! Area G, first part: hooks and plugins, chapters 3.4, 3.5 and 5.6.
