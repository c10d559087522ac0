//! JSON laid out for reading, every token exactly as it came.

/// Adds line breaks and indentation between tokens; numbers, texts and their order are not touched.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0usize;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                copy_text(&mut characters, &mut out);
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ if character.is_ascii_whitespace() => {}
            _ => out.push(character),
        }
    }
    out
}

/// The rest of a text, up to and including its closing quote.
fn copy_text(characters: &mut impl Iterator<Item = char>, out: &mut String) {
    let mut escaped = false;
    for character in characters {
        out.push(character);
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return,
            _ => {}
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn lays_out_without_touching_a_token() {
        let json = r#"{"b":123456789012345678901234567890,"a":[1.0, 1e400 ,{}],"t":"x, {\"y\": [1]}","e":[ ]}"#;
        let expected = "{\n  \"b\": 123456789012345678901234567890,\n  \"a\": [\n    1.0,\n    1e400,\n    {}\n  ],\n  \
                        \"t\": \"x, {\\\"y\\\": [1]}\",\n  \"e\": []\n}";
        assert_eq!(pretty(json), expected);
    }
}
