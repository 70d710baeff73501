//! Area H: multimodal input, chapter 8.
