//! Running the hub: configuration, reload, health, recovery, backups and cards.

mod backup;
mod cards;
mod config;
mod health;
mod recovery;
mod reload;
mod retention;
