//! Area C: context and compaction, chapter 5.2.
