//! A short run of every entry point on stable Rust: its committed inputs, and changes of them that are always the same.

mod layout;
mod run;
