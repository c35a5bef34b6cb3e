//! A Rust file as tokens: enough of the lexer to tell code from comments, strings and tests.

/// A piece of code. Literals keep only their first character (`"`, `'` or a digit), so no check sees into a string.
#[derive(Debug)]
pub struct Token {
    /// An identifier, one character of punctuation, or `::`.
    pub text: String,
    /// Line, from 1.
    pub line: usize,
    /// Whether it belongs to an item under `#[cfg(test)]`.
    pub test: bool,
}

/// A Rust file.
pub struct Source {
    /// Path from the root of the repository.
    pub path: String,
    /// Its lines as they are.
    pub lines: Vec<String>,
    /// Its code.
    pub tokens: Vec<Token>,
}

impl Source {
    /// Takes a file apart. Everything below a folder `tests/` or `benches/` is test code.
    pub fn new(path: &str, text: &str) -> Self {
        let mut source = Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            tokens: tokenize(text),
        };
        if path.split('/').any(|part| part == "tests" || part == "benches") {
            source.mark_all_test();
        } else {
            mark_test_items(&mut source.tokens);
        }
        source
    }

    /// Declares the whole file to be test code.
    pub fn mark_all_test(&mut self) {
        for token in &mut self.tokens {
            token.test = true;
        }
    }

    /// The code outside tests.
    pub fn code(&self) -> Vec<&Token> {
        self.tokens.iter().filter(|token| !token.test).collect()
    }

    /// Lines that do not belong to a test.
    pub fn lines_without_tests(&self) -> usize {
        let mut test = vec![false; self.lines.len() + 1];
        let mut tokens = self.tokens.iter().peekable();
        while let Some(token) = tokens.next() {
            if !token.test {
                continue;
            }
            let last = match tokens.peek() {
                Some(next) if next.test => next.line,
                _ => token.line,
            };
            test[token.line..=last].fill(true);
        }
        if !self.tokens.is_empty() && self.tokens.iter().all(|token| token.test) {
            return 0;
        }
        test.iter().skip(1).filter(|test| !**test).count()
    }

    /// Paths, without `.rs`, of the modules that this file declares as `#[cfg(test)] mod name;`.
    pub fn test_modules(&self) -> Vec<String> {
        let stem = self.path.trim_end_matches(".rs");
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let children = if ["mod", "lib", "main"].contains(&name) {
            folder
        } else {
            stem
        };
        self.tokens
            .windows(3)
            .filter(|part| part[0].test && part[0].text == "mod" && part[2].text == ";")
            .map(|part| format!("{children}/{}", part[1].text))
            .collect()
    }
}

/// Marks the items that `#[cfg(test)]`, or `#[cfg(all(…))]` with `test` in it, stands before.
fn mark_test_items(tokens: &mut [Token]) {
    let mut start = 0;
    while start < tokens.len() {
        if !opens_test_item(&tokens[start..]) {
            start += 1;
            continue;
        }
        let end = item_end(tokens, start);
        for token in &mut tokens[start..end] {
            token.test = true;
        }
        start = end;
    }
}

fn opens_test_item(tokens: &[Token]) -> bool {
    let words: Vec<&str> = tokens
        .iter()
        .take(20)
        .map(|token| token.text.as_str())
        .take_while(|word| *word != "]")
        .collect();
    words.starts_with(&["#", "[", "cfg", "("])
        && words.contains(&"test")
        && !words.contains(&"any")
        && !words.contains(&"not")
}

/// The index behind the item that starts at `start` with its attributes.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut index = start;
    while index < tokens.len() {
        match tokens[index].text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" if depth > 0 => depth -= 1,
            "}" if depth > 1 => depth -= 1,
            ";" if depth == 0 => return index + 1,
            // The item's own closing brace, or that of what surrounds a field or variant.
            "}" => return index + depth.min(1),
            _ => {}
        }
        index += 1;
    }
    index
}

fn tokenize(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(first) = lexer.peek(0) {
        let line = lexer.line;
        if let Some(text) = lexer.take_token(first) {
            tokens.push(Token {
                text,
                line,
                test: false,
            });
        }
    }
    tokens
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn bump_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut out = String::new();
        while let Some(next) = self.peek(0).filter(|next| wanted(*next)) {
            out.push(next);
            self.bump();
        }
        out
    }

    /// Takes one token, or a comment or space (`None`).
    fn take_token(&mut self, first: char) -> Option<String> {
        match (first, self.peek(1)) {
            ('/', Some('/')) => {
                self.bump_while(|next| next != '\n');
                None
            }
            ('/', Some('*')) => {
                self.skip_block_comment();
                None
            }
            (':', Some(':')) => {
                self.at += 2;
                Some("::".to_owned())
            }
            ('"', _) => {
                self.skip_string();
                Some("\"".to_owned())
            }
            ('\'', Some(next)) => Some(self.take_quote(next)),
            _ if first.is_whitespace() => {
                self.bump();
                None
            }
            _ if first.is_alphabetic() || first == '_' => Some(self.take_word()),
            _ if first.is_ascii_digit() => {
                self.bump_while(is_word);
                Some(first.to_string())
            }
            _ => {
                self.bump();
                Some(first.to_string())
            }
        }
    }

    /// An identifier, or a literal with a prefix such as `r#"…"#`, `b'x'` or `c"…"`.
    fn take_word(&mut self) -> String {
        let word = self.bump_while(is_word);
        let prefix = matches!(word.as_str(), "r" | "b" | "br" | "c" | "cr");
        match self.peek(0) {
            Some('\'') if word == "b" => {
                self.bump();
                self.skip_char_body();
                "'".to_owned()
            }
            Some('"') if prefix && !word.ends_with('r') => {
                self.skip_string();
                "\"".to_owned()
            }
            Some('"' | '#') if prefix && word.ends_with('r') => {
                let hashes = self.bump_while(|next| next == '#').len();
                if self.peek(0) != Some('"') {
                    return self.bump_while(is_word);
                }
                self.bump();
                self.skip_raw_body(hashes);
                "\"".to_owned()
            }
            _ => word,
        }
    }

    /// A character literal or a lifetime; `next` follows the quote.
    fn take_quote(&mut self, next: char) -> String {
        self.bump();
        if next == '\\' || self.peek(1) == Some('\'') {
            self.skip_char_body();
        } else {
            self.bump_while(is_word);
        }
        "'".to_owned()
    }

    fn skip_char_body(&mut self) {
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    self.bump();
                }
                '\'' => return,
                _ => {}
            }
        }
    }

    fn skip_string(&mut self) {
        self.bump();
        while let Some(next) = self.bump() {
            match next {
                '\\' => {
                    self.bump();
                }
                '"' => return,
                _ => {}
            }
        }
    }

    fn skip_raw_body(&mut self, hashes: usize) {
        while let Some(next) = self.bump() {
            if next == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.at += hashes;
                return;
            }
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.at += 2;
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                (Some(_), _) => {
                    self.bump();
                }
                (None, _) => return,
            }
        }
    }
}

fn is_word(next: char) -> bool {
    next.is_alphanumeric() || next == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokenize(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(words("a // crate::b\n c"), ["a", "c"]);
        assert_eq!(words("a /* x /* y */ z */ c"), ["a", "c"]);
        assert_eq!(
            words(r#"f("crate::b \" x", b"y", 'z')"#),
            ["f", "(", "\"", ",", "\"", ",", "'", ")"]
        );
        assert_eq!(words("r#\"a \" b\"# r#type br\"q\""), ["\"", "type", "\""]);
    }

    #[test]
    fn a_lifetime_does_not_open_a_character() {
        assert_eq!(
            words("&'a str; '\\'' b'\\\\' 'x'"),
            ["&", "'", "str", ";", "'", "'", "'"]
        );
    }

    #[test]
    fn tests_are_told_from_code() {
        let text =
            "//! x\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n\n    fn c() {}\n}\nfn d() {}\n";
        let source = Source::new("src/a.rs", text);
        assert_eq!(source.lines_without_tests(), 3);
        let code: Vec<_> = source.code().iter().map(|token| token.text.as_str()).collect();
        assert!(
            code.contains(&"a") && code.contains(&"d") && !code.contains(&"b"),
            "{code:?}"
        );
    }

    #[test]
    fn a_test_item_ends_where_it_ends() {
        for item in [
            "use x::{a, b};",
            "mod t;",
            "fn t(a: [u8; 2]) { if a { b } }",
            "impl T { fn x() {} }",
        ] {
            let source = Source::new(
                "src/a.rs",
                &format!("#[cfg(test)]\n#[rustfmt::skip]\n{item}\nfn kept() {{}}\n"),
            );
            let code: Vec<_> = source.code().iter().map(|token| token.text.as_str()).collect();
            assert!(
                code.contains(&"kept") && !code.contains(&"a") && !code.contains(&"t"),
                "{item}: {code:?}"
            );
        }
    }

    #[test]
    fn only_what_needs_test_is_a_test() {
        let marked = |attribute: &str| {
            Source::new("src/a.rs", &format!("{attribute} fn f() {{}}"))
                .code()
                .is_empty()
        };
        for attribute in [
            "#[cfg(test)]",
            "#[cfg(all(test, loom))]",
            "#[cfg(all(loom, test))]",
        ] {
            assert!(marked(attribute), "{attribute}");
        }
        for attribute in [
            "#[cfg(not(test))]",
            "#[cfg(any(test, fuzzing))]",
            "#[cfg(feature = \"test\")]",
            "#[test]",
        ] {
            assert!(!marked(attribute), "{attribute}");
        }
    }

    #[test]
    fn test_files_are_found_by_their_declaration() {
        let text = "#[cfg(test)]\nmod oracle;\nmod real;\n";
        assert_eq!(
            Source::new("c/src/wal/mod.rs", text).test_modules(),
            ["c/src/wal/oracle"]
        );
        assert_eq!(
            Source::new("c/src/wal.rs", text).test_modules(),
            ["c/src/wal/oracle"]
        );
    }
}
