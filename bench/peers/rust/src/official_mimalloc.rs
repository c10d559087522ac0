//! The official Rust crates once more, with the allocator that the hub has.
#![forbid(unsafe_code)]

#[path = "official.rs"]
mod official;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    official::main()
}
