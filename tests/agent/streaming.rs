//! Area E: streaming providers, retry, and chapter 7 of the requirements.
