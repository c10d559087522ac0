//! Running the hub: configuration, reload, health, recovery, backups, cards and the first client.

mod backup;
mod cards;
mod client;
mod config;
mod health;
mod recovery;
mod reload;
mod retention;
