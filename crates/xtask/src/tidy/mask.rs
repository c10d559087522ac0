//! Rust with its comments and literals blanked out, so that rules see code only; lines and columns stay.

pub fn mask(text: &str) -> String {
    let mut masker = Masker { text: text.chars().collect(), at: 0, masked: String::with_capacity(text.len()) };
    masker.run();
    masker.masked
}

struct Masker {
    text: Vec<char>,
    at: usize,
    masked: String,
}

impl Masker {
    fn run(&mut self) {
        while let Some(char) = self.peek(0) {
            match (char, self.peek(1)) {
                ('/', Some('/')) => self.blank_while(|masker| masker.peek(0).is_some_and(|c| c != '\n')),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) if !self.in_word() => self.raw_string(),
                ('b' | 'c', Some('r')) if !self.in_word() => {
                    self.keep();
                    self.raw_string();
                }
                ('\'', _) => self.quote(),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn in_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_some_and(|c| c.is_alphanumeric() || *c == '_')
    }

    fn keep(&mut self) {
        self.masked.extend(self.peek(0));
        self.at += 1;
    }

    fn blank(&mut self) {
        if let Some(char) = self.peek(0) {
            self.masked.push(if char == '\n' { '\n' } else { ' ' });
            self.at += 1;
        }
    }

    fn blank_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        while go_on(self) {
            self.blank();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.keep();
        while let Some(char) = self.peek(0) {
            match char {
                '"' => return self.keep(),
                '\\' => {
                    self.blank();
                    self.blank();
                }
                _ => self.blank(),
            }
        }
    }

    /// Stands on the `r`; what follows may also be a raw name or a word.
    fn raw_string(&mut self) {
        let hashes = self.text[self.at + 1..].iter().take_while(|c| **c == '#').count();
        if self.peek(1 + hashes) != Some('"') {
            return self.keep();
        }
        for _ in 0..hashes + 2 {
            self.keep();
        }
        let closes =
            |masker: &Self| masker.peek(0) == Some('"') && (1..=hashes).all(|ahead| masker.peek(ahead) == Some('#'));
        self.blank_while(|masker| masker.peek(0).is_some() && !closes(masker));
        for _ in 0..=hashes {
            self.keep();
        }
    }

    /// A character, or the name of a lifetime.
    fn quote(&mut self) {
        self.keep();
        if self.peek(0) == Some('\\') {
            self.blank();
            self.blank();
            self.blank_while(|masker| masker.peek(0).is_some_and(|c| c != '\''));
            self.keep();
        } else if self.peek(1) == Some('\'') {
            self.blank();
            self.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"{y")"#, r#"f("     ")"#),
            (r##"f(r#"a"b"#)"##, r##"f(r#"   "#)"##),
            (r#"f(br"a\")"#, r#"f(br"  ")"#),
            ("'{' 'a: '\\n' x", "' ' 'a: '  ' x"),
            ("for r in rows", "for r in rows"),
            ("\"open", "\"    "),
        ] {
            assert_eq!(mask(text), expected, "{text}");
        }
    }
}
