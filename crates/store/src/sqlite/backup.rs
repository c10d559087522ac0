//! A copy of the store while it is in use, and putting one back.

use super::journal::{self, Lock, beside};
use super::{apply, fault, real, schema};
use flotilla_core::error::Fault;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

const TRIES: u32 = 10;

/// Copies a store, also one in use, into a new file.
pub fn backup(store: &Path, target: &Path) -> Result<(), Fault> {
    let store = &real(store);
    if target.exists() {
        return Err(Fault::new(format!("{} exists already; name a new file", target.display())));
    }
    if let Some(dir) = target.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) {
        return Err(Fault::new(format!("there is no directory {}; make it, or name a file elsewhere", dir.display())));
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

/// The tables, and what the journal holds beyond them: all that was acknowledged. The journal is read first: a hub at
/// work puts what is in it into the tables, and only then uses it again.
fn copy_with_journal(source: &Connection, store: &Path, target: &Path) -> Result<(), Fault> {
    let _ = std::fs::remove_file(target);
    create_private(target)?;
    let epoch = schema::epoch(source)?;
    let mut tries = 0;
    let batches = loop {
        tries += 1;
        // A batch that is being written looks like damage if the next one is there when the rest is read.
        match apply::applied(source).and_then(|applied| journal::behind(store, &epoch, applied)) {
            Err(_) if tries < TRIES => {}
            read => break read?,
        }
    };
    copy(source, target)?;
    let connection = Connection::open(target).map_err(fault("opening the backup"))?;
    apply::add(&connection, &batches).map(|_| ())
}

/// For its owner only: it holds what everybody said.
fn create_private(path: &Path) -> Result<(), Fault> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let created = options.open(path);
    let told = |error| format!("creating {}: {error}; this user must be able to write there", path.display());
    created.map(|_| ()).map_err(|error| Fault::new(told(error)))
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
    let store = &real(store);
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
    create_private(&fresh)?;
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

fn not_ours(why: &str) -> Fault {
    Fault::new(format!("the file is not a Flotilla store ({why}); name one that 'flotilla backup' wrote"))
}

/// Whole, and ours.
fn check(connection: &Connection) -> Result<(), Fault> {
    let id: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| not_ours(&error.to_string()))?;
    if id != schema::APPLICATION_ID {
        return Err(not_ours("it is empty, or of another program"));
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
