//! A2A 0.3 in the JSON of its schema (`kind`, kebab-case), read into and written from the 1.0 model.

pub mod answer;
pub mod bare;
pub mod card;
pub mod error;
pub mod message;
pub mod method;
pub mod part;
pub mod push;
pub mod request;
pub mod state;
pub mod task;
#[cfg(test)]
mod tests;

use crate::wire::{Unknown, WireField};
use serde::Serialize;
use serde::de::{DeserializeOwned, MapAccess};
use serde::ser::{SerializeMap, Serializer};
use std::sync::Arc;

/// The version as requests name it.
pub const VERSION: &str = "0.3";
/// The version as cards name it.
pub const CARD_VERSION: &str = "0.3.0";

/// The JSON forms 0.3 is spoken in over HTTP. JSON-RPC has the first two, HTTP+JSON all but the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// That of the JSON Schema: `kind`, `user`, `input-required`.
    Kind,
    /// That of those who took over the shape of 1.0 and not its names: no `kind`, `user`, `{"task": …}`.
    Bare,
    /// ProtoJSON of the 0.3 proto: `content`, `ROLE_USER`, `TASK_STATE_INPUT_REQUIRED`.
    Proto,
    /// The same, for readers that want files as the proto has them and not as most SDKs do.
    ProtoBytes,
}

/// A value of the 1.0 model in its 0.3 form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct V03<T>(pub T);

/// How a value of the model is written in 0.3.
pub trait Write {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl<T: Write> Serialize for V03<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<T: Write + ?Sized> Write for &T {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).write(serializer)
    }
}

impl<T: Write> Write for Arc<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).write(serializer)
    }
}

impl<T: Write> Write for [T] {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(V03))
    }
}

impl<T: Write + Default + PartialEq> WireField for V03<T>
where
    Self: DeserializeOwned,
{
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        self.0 == T::default()
    }
}

/// Unwraps what was read as a list.
fn plain<T>(read: Vec<V03<T>>) -> Vec<T> {
    read.into_iter().map(|item| item.0).collect()
}

/// An object being written; what is absent is left out.
struct Out<M>(M);

impl<M: SerializeMap> Out<M> {
    fn new<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }
    fn put<T: WireField + Serialize>(&mut self, name: &'static str, value: &T) -> Result<(), M::Error> {
        if value.is_absent() { Ok(()) } else { self.0.serialize_entry(name, value) }
    }
    /// Written whatever it is.
    fn always<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }
    fn list<T: Write>(&mut self, name: &'static str, items: &[T]) -> Result<(), M::Error> {
        if items.is_empty() { Ok(()) } else { self.always(name, &V03(items)) }
    }
    /// Fields nobody here knows, but for those whose names mean something in 0.3.
    fn rest(mut self, unknown: &Unknown, taken: &[&str]) -> Result<M::Ok, M::Error> {
        for (name, value) in unknown.iter().filter(|(name, _)| !taken.contains(&name.as_str())) {
            self.0.serialize_entry(name, value)?;
        }
        self.0.end()
    }
}

/// Unknown fields the model can carry: one whose name means something else in 1.0 cannot be kept.
fn carried(mut unknown: Unknown, taken: &[&str]) -> Unknown {
    unknown.retain(|(name, _)| !taken.contains(&name.as_str()));
    unknown
}
