//! Chapters 6.1 to 6.3 and 10: build, create, resume, close, shutdown, threads.
