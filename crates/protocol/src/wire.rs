//! ProtoJSON by hand, in a single pass: camelCase and snake_case names, null as absent, unknown fields kept.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Fields this version does not know, in the order they came, byte for byte.
pub type Unknown = Vec<(String, Json)>;

/// How one field is read from and written to a JSON object.
pub trait WireField: Sized + Default {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error>;
    fn is_absent(&self) -> bool;
}

impl<T: DeserializeOwned> WireField for Option<T> {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        map.next_value()
    }
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: DeserializeOwned> WireField for Vec<T> {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl WireField for String {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl WireField for bool {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(map.next_value::<Option<Self>>()?.unwrap_or_default())
    }
    fn is_absent(&self) -> bool {
        !*self
    }
}

/// A message, by the names its fields have, in every spelling.
pub trait Named {
    const NAMES: &'static [&'static str];
}

/// Opaque JSON, kept exactly as it was written.
#[derive(Debug, Clone)]
pub struct Json(pub Box<RawValue>);

impl Json {
    /// Wraps text that is known to be one JSON value.
    pub fn new(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self)
    }
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

/// A `google.protobuf.Struct`: opaque JSON that must be an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object(pub Json);

impl Object {
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Self::checked(Json::of(value)?)
    }

    fn checked<E: Error>(json: Json) -> Result<Self, E> {
        if json.text().starts_with('{') { Ok(Self(json)) } else { Err(E::custom("must be a JSON object")) }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::checked(Json::deserialize(deserializer)?)
    }
}

/// A `google.protobuf.Value`: any JSON, where `null` is a value and not an absence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnyValue(pub Option<Json>);

impl WireField for AnyValue {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(Self(Some(map.next_value()?)))
    }
    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

impl Serialize for AnyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Reads what is left of a text behind its whole fours.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Bytes as base64 text; any of the usual alphabets is read, the standard one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64(String);

impl Base64 {
    pub fn encode(bytes: &[u8]) -> Self {
        Self(base64::engine::general_purpose::STANDARD.encode(bytes))
    }
    pub fn text(&self) -> &str {
        &self.0
    }
    /// How many bytes it stands for.
    pub fn decoded_len(&self) -> usize {
        self.0.len() / 4 * 3 - self.0.bytes().rev().take_while(|byte| *byte == b'=').count()
    }
    pub fn decode(&self) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(&self.0).unwrap_or_default()
    }
    /// Reads standard or URL-safe base64, padded or not.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.trim_end_matches('=');
        let mut canonical = String::with_capacity(body.len() + 3);
        for byte in body.bytes() {
            canonical.push(match byte {
                b'-' => '+',
                b'_' => '/',
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => byte as char,
                _ => return Err("is not base64".into()),
            });
        }
        if canonical.len() % 4 == 1 || text.len() - body.len() > 2 {
            return Err("is not base64: its length cannot be right".into());
        }
        // The last character may hold bits that belong to no byte; most encoders leave them empty, and readers want that.
        let last = LENIENT.decode(canonical.split_off(canonical.len() / 4 * 4));
        base64::engine::general_purpose::STANDARD.encode_string(last.unwrap_or_default(), &mut canonical);
        Ok(Self(canonical))
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

/// An int32, which ProtoJSON allows as a number or as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Int32(pub i32);

impl Serialize for Int32 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.0)
    }
}

struct Int32Visitor;

impl Visitor<'_> for Int32Visitor {
    type Value = Int32;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of 32 bits")
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<Int32, E> {
        i32::try_from(n).map(Int32).map_err(|_| E::custom(format!("{n} does not fit into 32 bits")))
    }
    fn visit_u64<E: Error>(self, n: u64) -> Result<Int32, E> {
        i32::try_from(n).map(Int32).map_err(|_| E::custom(format!("{n} does not fit into 32 bits")))
    }
    fn visit_f64<E: Error>(self, n: f64) -> Result<Int32, E> {
        if n.fract() == 0.0 && n.abs() <= f64::from(i32::MAX) {
            return Ok(Int32(n as i32));
        }
        Err(E::custom(format!("{n} is not a whole number of 32 bits")))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Int32, E> {
        let number = text.trim().parse::<i32>();
        number.map(Int32).map_err(|_| E::custom(format!("'{text}' is not a whole number of 32 bits")))
    }
}

impl<'de> Deserialize<'de> for Int32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Int32Visitor)
    }
}

/// A JSON object's key, borrowed from the input where it holds no escapes.
pub struct Key<'de>(pub Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

/// Lets a shared value stand where a plain one is expected.
impl<T: DeserializeOwned + Default> WireField for Arc<T> {
    fn read<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Self, A::Error> {
        Ok(Arc::new(map.next_value::<Option<T>>()?.unwrap_or_default()))
    }
    fn is_absent(&self) -> bool {
        false
    }
}

/// Declares a message: each field with its JSON name and the others it is read by, as its proto name where that differs.
#[macro_export]
macro_rules! wire {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident : $ty:ty = $camel:literal $(| $other:literal)* ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
            /// Fields of a newer version or another dialect, relayed unchanged.
            pub unknown: $crate::wire::Unknown,
        }

        impl $crate::wire::Named for $name {
            const NAMES: &'static [&'static str] = &[$($camel, $($other,)*)*];
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct MessageVisitor;
                impl<'de> serde::de::Visitor<'de> for MessageVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a JSON object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut message = $name::default();
                        let mut seen: Vec<&'static str> = Vec::new();
                        while let Some(key) = map.next_key::<$crate::wire::Key<'de>>()? {
                            match key.0.as_ref() {
                                $($camel $(| $other)* => {
                                    if seen.contains(&$camel) {
                                        return Err(serde::de::Error::duplicate_field($camel));
                                    }
                                    seen.push($camel);
                                    message.$field = $crate::wire::WireField::read(&mut map)?;
                                })*
                                _ => message.unknown.push((key.0.into_owned(), map.next_value()?)),
                            }
                        }
                        Ok(message)
                    }
                }
                deserializer.deserialize_map(MessageVisitor)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(if !$crate::wire::WireField::is_absent(&self.$field) {
                    map.serialize_entry($camel, &self.$field)?;
                })*
                for (name, value) in &self.unknown {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{AnyValue, Base64, Int32, Named as _, Object};

    wire! {
        /// A sample.
        pub struct Sample {
            some_text: String = "someText" | "some_text",
            count: Option<Int32> = "count",
            data: AnyValue = "data",
        }
    }

    fn round(text: &str) -> Result<String, String> {
        let sample: Sample = serde_json::from_str(text).map_err(|e| e.to_string())?;
        serde_json::to_string(&sample).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_both_spellings_and_keeps_what_it_does_not_know() {
        let text = r#"{"some_text":"a","later":{"n":9007199254740993, "x": [1.0]},"data":null}"#;
        let expected = r#"{"someText":"a","data":null,"later":{"n":9007199254740993, "x": [1.0]}}"#;
        assert_eq!(round(text).as_deref(), Ok(expected));
        assert_eq!(Sample::NAMES, ["someText", "some_text", "count", "data"]);
    }

    #[test]
    fn an_object_is_never_made_of_anything_else() {
        assert_eq!(Object::of(&serde_json::json!({"a": 1})).unwrap().0.text(), r#"{"a":1}"#);
        for other in [serde_json::json!(5), serde_json::json!([1]), serde_json::Value::Null] {
            assert!(Object::of(&other).is_err(), "{other}");
        }
    }

    #[test]
    fn null_is_absent_and_numbers_may_be_text() {
        assert_eq!(round(r#"{"someText":null,"count":"7"}"#).as_deref(), Ok(r#"{"count":7}"#));
        assert!(round(r#"{"count":9007199254740993}"#).unwrap_err().contains("32 bits"));
        assert!(round(r#"{"count":1,"count":2}"#).unwrap_err().contains("duplicate"));
    }

    #[test]
    fn reads_every_base64_alphabet() {
        assert_eq!(Base64::parse("-_8").unwrap().text(), "+/8=");
        assert_eq!(Base64::parse("+/8=").unwrap().decode(), vec![0xfb, 0xff]);
        // Bits that belong to no byte do not cost the bytes.
        assert_eq!(Base64::parse("aGk/aH").unwrap().text(), "aGk/aA==");
        assert_eq!(Base64::parse("aGl").unwrap().decode(), b"hi");
        for bytes in ["", "a", "ab", "abc", "abcd"] {
            assert_eq!(Base64::encode(bytes.as_bytes()).decoded_len(), bytes.len());
        }
        assert!(Base64::parse("a b").is_err());
        assert!(Base64::parse("abcde").is_err());
    }
}
