//! What a search of the catalog asks, as ARD writes it.

use flotilla_protocol::decode::message;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The longest need that is read.
const LONGEST: usize = 2_000;
/// Members of an entry that a filter may name.
const FILTERS: [&str; 8] =
    ["type", "mediaType", "tags", "capabilities", "publisher", "version", "identifier", "displayName"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    query: Query,
    #[serde(default)]
    federation: Federation,
    #[serde(default)]
    page_size: Option<i64>,
    #[serde(default)]
    page_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    filter: Option<Map<String, Value>>,
}

/// Whether other registries are to be asked; this one knows none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Federation {
    #[default]
    Auto,
    Referrals,
    None,
}

#[derive(Debug)]
pub struct Search {
    pub text: String,
    /// By member of an entry, the values of which one must be there.
    pub filter: Vec<(String, Vec<String>)>,
    pub federation: Federation,
    pub size: usize,
    pub after: Option<Mark>,
}

/// The last one of a page: the next begins after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub score: u8,
    pub name: String,
}

impl Mark {
    pub fn token(&self) -> String {
        format!("{}.{}", self.score, self.name)
    }

    pub fn read(token: &str) -> Result<Self, String> {
        let parts = token.split_once('.').and_then(|(score, name)| Some((score.parse().ok()?, name)));
        let (score, name) = parts.ok_or("pageToken is none that was given here; begin again without it")?;
        Ok(Self { score, name: name.to_owned() })
    }
}

/// The size of a page: one that is too large is made smaller, as ARD says what is most.
pub fn page_size(asked: Option<i64>, usual: usize) -> Result<usize, String> {
    match asked {
        None => Ok(usual),
        Some(size) if size < 1 => Err("pageSize must be at least 1".into()),
        Some(size) => Ok(usize::try_from(size).unwrap_or(100).min(100)),
    }
}

/// Reads a search; what is wrong with it is told in words.
pub fn read(bytes: &[u8]) -> Result<Search, String> {
    let body: Body = message(bytes).map_err(|refusal| refusal.message)?;
    let text = body.query.text.unwrap_or_default();
    if text.trim().is_empty() {
        return Err("query.text must say what is looked for; GET agents lists all without it".into());
    }
    if text.len() > LONGEST {
        return Err(format!("query.text is longer than may be ({LONGEST} bytes)"));
    }
    Ok(Search {
        text,
        filter: filter(body.query.filter.unwrap_or_default())?,
        federation: body.federation,
        size: page_size(body.page_size, 10)?,
        after: body.page_token.map(|token| Mark::read(&token)).transpose()?,
    })
}

fn filter(filter: Map<String, Value>) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut read = Vec::new();
    for (key, value) in filter {
        if !FILTERS.contains(&key.as_str()) {
            return Err(format!("query.filter: '{key}' cannot be filtered by; there are: {}", FILTERS.join(", ")));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let values = match &value {
            Value::Array(values) => values.iter().map(text).collect::<Option<Vec<String>>>(),
            value => text(value).map(|one| vec![one]),
        };
        let values = values.ok_or_else(|| format!("query.filter.{key} must be a text or a list of texts"))?;
        read.push((key, values));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::{Mark, read};

    #[test]
    fn searches_are_read_and_slips_are_told() {
        let search = read(br#"{"query": {"text": "x", "filter": {"tags": "a", "type": ["b", "c"]}}, "pageSize": 500}"#);
        let search = search.unwrap();
        assert_eq!((search.size, search.filter.len()), (100, 2));
        for (text, word) in [
            ("{", "not valid JSON"),
            ("[]", "a JSON object"),
            (r#"{"query": {"text": 5}}"#, "query.text"),
            ("{}", "query"),
            (r#"{"query": {}}"#, "query.text"),
            (r#"{"query": {"text": "x"}, "page": 1}"#, "page"),
            (r#"{"query": {"text": "x", "filter": {"price": "1"}}}"#, "price"),
            (r#"{"query": {"text": "x", "filter": {"tags": [1]}}}"#, "query.filter.tags"),
            (r#"{"query": {"text": "x"}, "pageSize": 0}"#, "pageSize"),
            (r#"{"query": {"text": "x"}, "pageToken": "?"}"#, "pageToken"),
            (r#"{"query": {"text": "x"}, "federation": "all"}"#, "federation"),
        ] {
            let told = read(text.as_bytes()).unwrap_err();
            assert!(told.contains(word), "{text}: {told}");
            assert!(!told.contains("struct"), "in plain words: {told}");
        }
        let mark = Mark { score: 7, name: "a.b".into() };
        assert_eq!(Mark::read(&mark.token()), Ok(mark));
    }
}
