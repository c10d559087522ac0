//! Running the hub: configuration, reload, health, recovery, backups and cards, signed and extended.

mod announce;
mod backup;
mod cards;
mod catalog;
mod config;
mod extended;
mod health;
mod metrics;
mod recovery;
mod reload;
mod retention;
mod signatures;
mod variables;
