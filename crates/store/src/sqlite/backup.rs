//! A copy of the store while it is in use, and putting one back.

use super::journal::{self, Lock, beside};
use super::{apply, fault, schema};
use flotilla_core::error::Fault;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

const TRIES: u32 = 10;

/// Copies a store, also one in use, into a new file.
pub fn backup(store: &Path, target: &Path) -> Result<(), Fault> {
    if target.exists() {
        return Err(Fault::new(format!("{} exists already; name a new file", target.display())));
    }
    let source = open_existing(store)?;
    let partial = target.with_extension("partial");
    let copied = copy_with_journal(&source, store, &partial);
    if copied.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    copied?;
    std::fs::rename(&partial, target).map_err(|error| Fault::new(format!("naming the backup: {error}")))
}

/// The tables, and what the journal holds beyond them: all that was acknowledged. A hub at work may put more into the
/// tables and use the journal again between the two; then another copy is made.
fn copy_with_journal(source: &Connection, store: &Path, target: &Path) -> Result<(), Fault> {
    let mut tries = 0;
    loop {
        let _ = std::fs::remove_file(target);
        copy(source, target)?;
        let connection = Connection::open(target).map_err(fault("opening the backup"))?;
        let caught_up = schema::epoch(&connection).and_then(|epoch| apply::catch_up(&connection, store, &epoch));
        tries += 1;
        match caught_up {
            Ok(_) => return Ok(()),
            Err(_) if tries < TRIES => {}
            Err(fault) => return Err(fault),
        }
    }
}

fn copy(source: &Connection, target: &Path) -> Result<(), Fault> {
    let mut copy = Connection::open(target).map_err(fault("creating the backup"))?;
    {
        let backup = Backup::new(source, &mut copy).map_err(fault("starting the backup"))?;
        // All in one step: a hub in use restarts a copy that another connection writes under.
        backup.run_to_completion(i32::MAX, Duration::from_millis(50), None).map_err(fault("copying the store"))?;
    }
    copy.execute_batch("PRAGMA journal_mode = DELETE;").map_err(fault("finishing the backup"))?;
    check(&copy)
}

/// Puts a backup in the place of a store that is not in use, under a new epoch.
pub fn restore(backup: &Path, store: &Path, replace: bool) -> Result<(), Fault> {
    if store.exists() && !replace {
        let text = format!("{} exists already; add --force to replace it", store.display());
        return Err(Fault::new(text));
    }
    let Some(lock) = Lock::try_take(store)? else {
        return Err(Fault::new(format!("{} is in use by a hub; stop it first", store.display())));
    };
    let source = open_existing(backup)?;
    check(&source)?;
    let fresh = store.with_extension("restoring");
    let _ = std::fs::remove_file(&fresh);
    copy(&source, &fresh)?;
    let restored = Connection::open(&fresh).map_err(fault("opening the restored store"))?;
    schema::renew_epoch(&restored)?;
    drop(restored);
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(beside(store, suffix));
    }
    std::fs::rename(&fresh, store).map_err(|error| Fault::new(format!("putting the store in place: {error}")))?;
    journal::remove(store, &lock);
    Ok(())
}

fn open_existing(path: &Path) -> Result<Connection, Fault> {
    if !path.exists() {
        return Err(Fault::new(format!("{} does not exist", path.display())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(|error| Fault::new(format!("opening {}: {error}", path.display())))?;
    connection.busy_timeout(Duration::from_secs(10)).map_err(fault("waiting for the store"))?;
    Ok(connection)
}

/// Whole, and ours.
fn check(connection: &Connection) -> Result<(), Fault> {
    let id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| Fault::new(format!("not a Flotilla store: {error}")))?;
    if id != schema::APPLICATION_ID {
        return Err(Fault::new("the file is not a Flotilla store"));
    }
    let verdict: String =
        connection.query_row("PRAGMA quick_check", [], |row| row.get(0)).map_err(fault("checking the store"))?;
    if verdict != "ok" {
        return Err(Fault::new(format!("the store is damaged: {verdict}")));
    }
    if schema::version(connection)? > schema::VERSION {
        return Err(Fault::new("the backup is of a newer Flotilla; use that one to restore it"));
    }
    Ok(())
}
