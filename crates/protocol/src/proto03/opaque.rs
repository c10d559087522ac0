//! Opaque JSON in 0.3: a data part holds an object there, so any other value is wrapped, and marked as wrapped.

use crate::wire;
use crate::wire::{AnyValue, Json, Object};

wire! {
    /// Metadata of a part, with the mark the published SDKs put there.
    pub struct Marked {
        wrapped: Option<bool> = "data_part_compat",
    }
}

wire! {
    /// What a value that is no object is wrapped in.
    pub struct Wrapped {
        value: AnyValue = "value",
    }
}

/// A part's data as an object, and the metadata it goes with.
pub fn wrap(data: &Json, metadata: Option<&Object>) -> (Object, Option<Object>) {
    if data.text().starts_with('{') {
        return (Object(data.clone()), metadata.cloned());
    }
    let wrapped = Wrapped { value: AnyValue(Some(data.clone())), ..Wrapped::default() };
    let mut marked: Marked =
        metadata.and_then(|members| serde_json::from_str(members.0.text()).ok()).unwrap_or_default();
    marked.wrapped = Some(true);
    match (Object::of(&wrapped), Object::of(&marked)) {
        (Ok(data), Ok(metadata)) => (data, Some(metadata)),
        // Both were JSON before, so this does not happen; the data counts more than its mark.
        _ => (Object(data.clone()), metadata.cloned()),
    }
}

/// Takes out again what `wrap` or a published SDK put there.
pub fn unwrap(data: Object, metadata: Option<Object>) -> (Json, Option<Object>) {
    let mark = metadata.as_ref().and_then(|members| serde_json::from_str::<Marked>(members.0.text()).ok());
    let Some(mark) = mark.filter(|mark| mark.wrapped == Some(true)) else { return (data.0, metadata) };
    let wrapped = serde_json::from_str::<Wrapped>(data.0.text()).ok();
    match wrapped {
        Some(Wrapped { value: AnyValue(Some(value)), unknown }) if unknown.is_empty() => {
            let rest = Marked { wrapped: None, ..mark };
            (value, if rest.unknown.is_empty() { None } else { Object::of(&rest).ok() })
        }
        _ => (data.0, metadata),
    }
}

#[cfg(test)]
mod tests {
    use super::{unwrap, wrap};
    use crate::wire::{Json, Object};

    fn object(text: &str) -> Object {
        Object(Json::new(text.into()).unwrap())
    }

    #[test]
    fn what_is_no_object_comes_back_as_it_was() {
        for (data, metadata) in [("[1, 2.0]", None), ("9007199254740993", Some(r#"{"a": 1}"#)), ("null", None)] {
            let (data, metadata) = (Json::new(data.into()).unwrap(), metadata.map(object));
            let (wrapped, marked) = wrap(&data, metadata.as_ref());
            assert_eq!(wrapped.0.text(), format!("{{\"value\":{}}}", data.text()));
            assert!(marked.as_ref().unwrap().0.text().contains("\"data_part_compat\":true"));
            let (again, rest) = unwrap(wrapped, marked);
            assert_eq!(again, data);
            assert_eq!(rest.map(|rest| rest.0.text().replace(' ', "")), metadata.map(|m| m.0.text().replace(' ', "")));
        }
    }

    #[test]
    fn objects_stay_as_they_are() {
        let data = Json::new(r#"{"value": 1}"#.into()).unwrap();
        assert_eq!(wrap(&data, None), (Object(data.clone()), None));
        assert_eq!(unwrap(Object(data.clone()), None), (data, None));
        let more = object(r#"{"value":1,"b":2}"#);
        let mark = object(r#"{"data_part_compat":true}"#);
        assert_eq!(unwrap(more.clone(), Some(mark.clone())), (more.0, Some(mark)));
    }
}
