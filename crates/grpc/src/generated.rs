//! What `cargo run -q -p xtask -- proto` writes; tidy checks that it is up to date.

#[rustfmt::skip]
pub mod a2a;
#[rustfmt::skip]
pub mod a2a_v03;
#[rustfmt::skip]
pub mod rpc;
