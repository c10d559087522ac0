//! Whether two values are the same to a schema: numbers by what they are worth, objects whatever their order.

use super::Root;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Write as _;

/// So many letters of values that are compared are a step.
const LETTERS: usize = 500;

impl Root<'_> {
    /// Whether a value is one of these. As many as were looked at count.
    pub(super) fn is_one_of(&self, known: &[Value], value: &Value) -> bool {
        let print = self.print(value);
        known.iter().any(|known| !self.is_spent() && self.print(known) == print)
    }

    pub(super) fn are_different(&self, items: &[Value]) -> bool {
        let mut seen = HashSet::with_capacity(items.len());
        items.iter().all(|item| self.is_spent() || seen.insert(self.print(item)))
    }

    /// The same text for the same value.
    fn print(&self, value: &Value) -> String {
        let mut out = String::new();
        write(value, &mut out);
        self.count_letters(out.len(), LETTERS);
        out
    }
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).filter(|number| number.fract() == 0.0);
            // Up to here each whole number is one.
            let _ = match whole.filter(|number| number.abs() <= 9_007_199_254_740_992.0) {
                Some(whole) => write!(out, "{}", whole as i64),
                None => write!(out, "{number}"),
            };
        }
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| {
                write(item, out);
                out.push(',');
            });
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (name, inner) in members {
                let _ = write!(out, "{}:", Value::from(name.as_str()));
                write(inner, out);
                out.push(',');
            }
            out.push('}');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}
