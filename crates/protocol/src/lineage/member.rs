//! The member of the metadata in which ancestry travels: read with care, written beside what others put there.

use super::ANCESTRY;
use crate::a2a::error::{Refusal, Violation};
use crate::time::Millis;
use crate::wire::{Json, Object};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::VecDeque;
use std::fmt;

/// A chain that is longer is far beyond any limit of hops, and not read.
pub const MOST_ANCESTORS: usize = 128;
/// The longest name of a hub, an agent or a task.
const MOST_NAME: usize = 256;

/// One task of a chain, and who works at it where. It is read in both of its forms, and written as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ancestor {
    /// The hub's id, which it keeps for as long as it lives.
    pub hub: String,
    pub agent: String,
    /// The task's id at that hub; empty where an agent has no tasks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
}

impl Ancestor {
    pub fn is(&self, hub: &str, agent: &str) -> bool {
        self.hub == hub && self.agent == agent
    }

    /// `hub/agent/task`; none if that would be read otherwise.
    fn brief(&self) -> Option<String> {
        let is_plain = !self.hub.contains('/') && !self.agent.contains('/');
        is_plain.then(|| [&*self.hub, &*self.agent, &*self.task].join("/"))
    }
}

impl<'de> Deserialize<'de> for Ancestor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Spelled {
            hub: String,
            agent: String,
            #[serde(default)]
            task: String,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Ancestor;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("{hub, agent, task} or \"hub/agent/task\"")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ancestor, A::Error> {
                let Spelled { hub, agent, task } = Spelled::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Ancestor { hub, agent, task })
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Ancestor, E> {
                let mut names = text.splitn(3, '/').map(str::to_owned);
                let mut next = || names.next().unwrap_or_default();
                Ok(Ancestor { hub: next(), agent: next(), task: next() })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A chain as it travels. Each value of a structure costs agents in some languages more than its bytes do.
fn brief<S: Serializer>(chain: &[Ancestor], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Either<'a> {
        Brief(String),
        Spelled(&'a Ancestor),
    }
    serializer.collect_seq(chain.iter().map(|one| one.brief().map_or(Either::Spelled(one), Either::Brief)))
}

/// The same of what was claimed.
fn brief_claim<S: Serializer>(claim: &Option<Claim>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Brief<'a> {
        #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "brief")]
        chain: &'a [Ancestor],
        hops: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_hops: Option<u32>,
    }
    let written =
        claim.as_ref().map(|Claim { chain, hops, max_hops }| Brief { chain, hops: *hops, max_hops: *max_hops });
    written.serialize(serializer)
}

/// A whole number, or none. A structure of protobuf holds nothing but floats, so `2.0` is 2.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Whole;
    impl Visitor<'_> for Whole {
        type Value = Option<u32>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("u32")
        }
        fn visit_unit<E: Error>(self) -> Result<Option<u32>, E> {
            Ok(None)
        }
        fn visit_u64<E: Error>(self, n: u64) -> Result<Option<u32>, E> {
            u32::try_from(n).map(Some).map_err(|_| E::invalid_value(Unexpected::Unsigned(n), &self))
        }
        fn visit_i64<E: Error>(self, n: i64) -> Result<Option<u32>, E> {
            u32::try_from(n).map(Some).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
        }
        fn visit_f64<E: Error>(self, n: f64) -> Result<Option<u32>, E> {
            let fits = n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n);
            fits.then_some(Some(n as u32)).ok_or_else(|| E::invalid_value(Unexpected::Float(n), &self))
        }
    }
    deserializer.deserialize_any(Whole)
}

/// The same where none is 0.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer).map(Option::unwrap_or_default)
}

/// What a call tells of the calls before it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ancestry {
    /// The tasks this call was made for, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "brief")]
    pub chain: Vec<Ancestor>,
    /// Calls from agent to agent, this one included; without it, as many as the chain is long.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub hops: Option<u32>,
    /// When the work is of no use any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Millis>,
    /// The most hops whoever began the chain allows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub max_hops: Option<u32>,
    /// What came before the chain, in the words of somebody who showed no key.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "brief_claim")]
    pub claimed: Option<Claim>,
}

/// What somebody told of the calls before who showed no key. Nobody knows whether it is so, so it speaks only against
/// the work: it can end a ring, and never allow anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Ancestor>,
    #[serde(default, deserialize_with = "count")]
    pub hops: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    pub max_hops: Option<u32>,
}

impl Claim {
    /// All that an ancestry tells, as the word of a stranger. Of a chain that is too long the latest are kept.
    pub fn of(told: Ancestry, most: usize) -> Self {
        let Ancestry { mut chain, hops, max_hops, claimed, .. } = told;
        let hops = hops.unwrap_or(0).max(u32::try_from(chain.len()).unwrap_or(u32::MAX));
        let Self { chain: mut before, hops: earlier, max_hops: least } = claimed.unwrap_or_default();
        before.append(&mut chain);
        let max_hops = max_hops.into_iter().chain(least).min();
        before.drain(..before.len().saturating_sub(most.min(MOST_ANCESTORS)));
        Self { chain: before, hops: earlier.saturating_add(hops), max_hops }
    }
}

impl Ancestry {
    /// The ancestry in a request's metadata, or else in its message's: a hub that relays a message leaves it as it is.
    pub fn of(request: Option<&Object>, message: Option<&Object>) -> Result<Option<Self>, Refusal> {
        let Some((json, field)) = Self::told(request, message) else { return Ok(None) };
        Self::read(&json).map(Some).map_err(|problem| {
            let text = format!(
                "'{ANCESTRY}' takes \"hub/agent/task\", or chain (a list of \"hub/agent/task\" or {{hub, agent, task}}), hops, deadline, maxHops and claimed: {problem}"
            );
            Refusal::invalid(field, text)
        })
    }

    /// What stands for the whole where it is a chain of one and nothing else, as most are: that one.
    pub(super) fn lone(&self) -> Option<String> {
        let [one] = &*self.chain else { return None };
        let is_all =
            self.hops.is_none() && self.deadline.is_none() && self.max_hops.is_none() && self.claimed.is_none();
        if is_all { one.brief() } else { None }
    }

    /// The same, read.
    fn of_one(json: &Json) -> Option<Self> {
        let one: Ancestor = json.text().starts_with('"').then(|| serde_json::from_str(json.text()).ok())??;
        Some(Self { chain: vec![one], ..Self::default() })
    }

    /// As much of it as can be read and is no deadline, for what is held against the work alone: nothing is hidden behind
    /// a slip.
    pub fn readable(request: Option<&Object>, message: Option<&Object>) -> Option<Self> {
        let (json, _) = Self::told(request, message)?;
        if let Some(Self { chain, .. }) = Self::of_one(&json) {
            let chain = chain.into_iter().filter(|one| check(std::slice::from_ref(one), "").is_ok()).collect();
            return Some(Self { chain, hops: Some(1), ..Self::default() });
        }
        let members = serde_json::from_str(json.text()).ok()?;
        let Claim { chain, hops, max_hops } = readable(&members);
        let claimed = members.last("claimed").and_then(|json| serde_json::from_str(json.text()).ok());
        let claimed = claimed.map(|members| readable(&members));
        Some(Self { chain, hops: Some(hops), max_hops, claimed, deadline: None })
    }

    fn told(request: Option<&Object>, message: Option<&Object>) -> Option<(Json, &'static str)> {
        [(request, "metadata"), (message, "message.metadata")].into_iter().find_map(|(metadata, field)| {
            let json = find(metadata?, ANCESTRY)?;
            // Null is absent, as everywhere.
            (json.text() != "null").then_some((json, field))
        })
    }

    /// Whether there is one, whatever it holds.
    pub fn is_told(request: Option<&Object>, message: Option<&Object>) -> bool {
        [request, message].into_iter().flatten().any(|metadata| find(metadata, ANCESTRY).is_some())
    }

    fn read(json: &Json) -> Result<Self, String> {
        let whole = || {
            crate::decode::message(json.text().as_bytes()).map_err(|refusal| {
                let told = |violation: &Violation| match violation.field.as_str() {
                    "" => violation.description.clone(),
                    field => format!("{field}: {}", violation.description),
                };
                refusal.violations.first().map_or(refusal.message.clone(), told)
            })
        };
        let read: Self = Self::of_one(json).map_or_else(whole, Ok)?;
        check(&read.chain, "chain")?;
        check(read.claimed.as_ref().map_or(&[], |claim| &claim.chain), "claimed.chain")?;
        Ok(read)
    }
}

fn check(chain: &[Ancestor], place: &str) -> Result<(), String> {
    if chain.len() > MOST_ANCESTORS {
        return Err(format!("{place} holds {} entries, and may hold {MOST_ANCESTORS}", chain.len()));
    }
    for (index, one) in chain.iter().enumerate() {
        for (field, text, may_be_empty) in
            [("hub", &one.hub, false), ("agent", &one.agent, false), ("task", &one.task, true)]
        {
            if text.len() > MOST_NAME || text.chars().any(char::is_control) || (text.is_empty() && !may_be_empty) {
                return Err(format!("{place}[{index}].{field} must be a name of 1 to {MOST_NAME} bytes"));
            }
        }
    }
    Ok(())
}

/// The entries of a chain that can be read, of too many the latest, and how many there are in all.
#[derive(Default)]
struct Entries(VecDeque<Ancestor>, usize);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries, A::Error> {
                let mut entries = Entries::default();
                while let Some(json) = seq.next_element::<Json>()? {
                    entries.1 += 1;
                    let read = serde_json::from_str(json.text()).ok();
                    entries.0.extend(read.filter(|one| check(std::slice::from_ref(one), "").is_ok()));
                    if entries.0.len() > MOST_ANCESTORS {
                        entries.0.pop_front();
                    }
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_seq(EntriesVisitor)
    }
}

/// What can be read of a chain and its hops. An entry that cannot is a hop all the same.
fn readable(members: &Members) -> Claim {
    let Entries(chain, all) =
        members.last("chain").and_then(|json| serde_json::from_str(json.text()).ok()).unwrap_or_default();
    let number = |name| whole(&mut serde_json::Deserializer::from_str(members.last(name)?.text())).ok().flatten();
    let hops = number("hops").unwrap_or(0).max(u32::try_from(all).unwrap_or(u32::MAX));
    Claim { chain: chain.into(), hops, max_hops: number("maxHops") }
}

/// The members of an object, in their order.
struct Members(Vec<(String, Json)>);

impl Members {
    /// Of two of the same name, the last.
    fn last(&self, name: &str) -> Option<&Json> {
        self.0.iter().rev().find_map(|(known, json)| (known == name).then_some(json))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, json)| (name, json)))
    }
}

/// A member of an object; of two of the same name, the last.
pub fn find(object: &Object, name: &str) -> Option<Json> {
    let text = object.0.text();
    // Most metadata says nothing of the kind. A name may be written with escapes.
    if !text.contains(name) && !text.contains('\\') {
        return None;
    }
    serde_json::from_str::<Members>(text).ok()?.last(name).cloned()
}

/// The object with a member in the place of those of the same name.
pub fn put(object: Option<&Object>, name: &str, json: Json) -> Object {
    let members = object.and_then(|object| serde_json::from_str::<Members>(object.0.text()).ok());
    let mut members = members.map(|members| members.0).unwrap_or_default();
    members.retain(|(known, _)| known != name);
    members.push((name.to_owned(), json));
    Object::of(&Members(members)).expect("members that were JSON are JSON")
}

/// The object without the members of a name; none if nothing is left of it.
pub fn without(object: &Object, name: &str) -> Option<Object> {
    let Members(mut members) = serde_json::from_str(object.0.text()).ok()?;
    members.retain(|(known, _)| known != name);
    if members.is_empty() { None } else { Object::of(&Members(members)).ok() }
}
