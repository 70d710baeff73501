//! Area A: cancel and interrupt, and chapter 6.2.
