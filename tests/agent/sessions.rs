//! Area D: sessions, storage, resume, chapter 3.6.
