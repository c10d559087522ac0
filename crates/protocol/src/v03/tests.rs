//! The rules of docs/bridging.md, a test for each row.

mod cards;
mod content;
mod requests;
mod tasks;

use super::V03;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The 1.0 JSON of what was read as 0.3, or why it cannot be read.
fn newer<T: Serialize>(old: &str) -> Result<String, String>
where
    V03<T>: DeserializeOwned,
{
    let read: V03<T> = serde_json::from_str(old).map_err(|error| error.to_string())?;
    serde_json::to_string(&read.0).map_err(|error| error.to_string())
}

/// The 0.3 JSON of what was read as 1.0.
fn older<T: DeserializeOwned + super::Write>(new: &str) -> String {
    let read: T = serde_json::from_str(new).expect("1.0 JSON");
    serde_json::to_string(&V03(read)).expect("0.3 JSON")
}

/// Two forms of the same thing, each the other's translation.
fn same<T: Serialize + DeserializeOwned + super::Write>(old: &str, new: &str)
where
    V03<T>: DeserializeOwned,
{
    assert_eq!(newer::<T>(old).as_deref(), Ok(new));
    assert_eq!(older::<T>(new), old);
}
