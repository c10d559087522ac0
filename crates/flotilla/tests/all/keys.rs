//! Keys and what they let one see: nothing of others, and of an agent's thoughts only what A2A shows.

mod access;
mod api;
mod ends;
mod isolation;
mod limited;
mod matrix;
mod opacity;
mod secrets;
mod timing;
mod visibility;
