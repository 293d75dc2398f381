//! Just enough of Rust's lexical rules to count: blanks out comments and literals, then finds functions.
//!
//! Invariant: blanking keeps every newline and every character's place, so line numbers hold in both texts.

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Where its `fn` stands, from 1.
    pub(super) line: usize,
    /// From `fn` to the closing brace.
    pub(super) lines: usize,
    /// Without `self`.
    pub(super) parameters: usize,
}

/// The source with comments, strings and character literals turned into spaces.
pub(super) fn blank(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let mut out = text.clone();
    let mut at = 0;
    while at < text.len() {
        let end = literal_end(&text, at);
        for place in &mut out[at..end] {
            if *place != '\n' {
                *place = ' ';
            }
        }
        at = end.max(at + 1);
    }
    out.into_iter().collect()
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none does.
fn literal_end(text: &[char], at: usize) -> usize {
    let next = text.get(at + 1).copied();
    match (text[at], next) {
        ('/', Some('/')) => (at..text.len()).find(|&i| text[i] == '\n').unwrap_or(text.len()),
        ('/', Some('*')) => block_end(text, at),
        ('"', _) => string_end(text, at + 1),
        ('\'', Some('\\')) => (at + 3..text.len()).find(|&i| text[i] == '\'').map_or(text.len(), |i| i + 1),
        // Otherwise a lifetime.
        ('\'', Some(_)) if text.get(at + 2) == Some(&'\'') => at + 3,
        ('r', Some('"' | '#')) if starts_word(text, at) => raw_end(text, at),
        _ => at,
    }
}

fn block_end(text: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < text.len() {
        match (text[i], text[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') if depth == 1 => return i + 2,
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    text.len()
}

fn string_end(text: &[char], mut i: usize) -> usize {
    while i < text.len() {
        match text[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    text.len()
}

/// `at` itself for a raw identifier such as `r#type`.
fn raw_end(text: &[char], at: usize) -> usize {
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if text.get(open) != Some(&'"') {
        return at;
    }
    let closes =
        |i: usize| text[i] == '"' && text[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    (open + 1..text.len()).find(|&i| closes(i)).map_or(text.len(), |i| i + 1 + hashes)
}

/// Whether no longer word runs into this place; `br"…"` counts as a start.
fn starts_word(text: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|i| text[i]);
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !in_word(before(1)) || (matches!(before(1), Some('b' | 'c')) && !in_word(before(2)))
}

/// Every function with a body, in order, nested ones included. Takes blanked text.
pub(super) fn functions(blanked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in blanked.match_indices("fn ") {
        let free = blanked[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let name: String = blanked[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !free || name.is_empty() {
            continue;
        }
        if let Some((head, body)) = extent(&blanked[at..]) {
            let line = blanked[..at].matches('\n').count() + 1;
            let lines = blanked[at..at + body].matches('\n').count() + 1;
            found.push(Function { name, line, lines, parameters: parameters(&blanked[at..at + head]) });
        }
    }
    found
}

/// How far the signature and the whole function reach; `None` where a `;` ends it without a body.
fn extent(text: &str) -> Option<(usize, usize)> {
    let (mut round, mut curly, mut head) = (0, 0, None);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && head.is_none() => return None,
            '{' => {
                head.get_or_insert(at);
                curly += 1;
            }
            '}' => {
                curly -= 1;
                if curly == 0 {
                    return head.map(|head| (head, at + 1));
                }
            }
            _ => {}
        }
    }
    None
}

/// Counts the parameters between a signature's outer parentheses.
fn parameters(head: &str) -> usize {
    let Some(inner) = argument_list(head) else { return 0 };
    let mut parts = vec![String::new()];
    let (mut depth, mut before) = (0, ' ');
    for c in inner.chars() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if c != ',' || depth != 0 {
            parts.last_mut().expect("starts with one part").push(c);
        }
        before = c;
    }
    let own = |part: &str| matches!(part.trim_start_matches(['&', ' ']).trim_start_matches("mut ").trim(), "self");
    parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty() && !own(part)).count()
}

/// What stands in the first parentheses outside of `<…>`.
fn argument_list(head: &str) -> Option<&str> {
    let (mut angle, mut round, mut open, mut before) = (0, 0, None, ' ');
    for (at, c) in head.char_indices() {
        match c {
            '<' if open.is_none() => angle += 1,
            '>' if open.is_none() && before != '-' => angle -= 1,
            '(' if angle == 0 => {
                open.get_or_insert(at + 1);
                round += 1;
            }
            ')' if open.is_some() => {
                round -= 1;
                if round == 0 {
                    return open.map(|open| &head[open..at]);
                }
            }
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_become_spaces_in_place() {
        let cases = [
            ("a // {\nb", "a     \nb"),
            ("/* { /* } */ */x", "               x"),
            (r#"f("{\"}")"#, "f(      )"),
            ("r#\"{\"}\"#;", "        ;"),
            ("br\"{\" r#type", "b     r#type"),
            ("'{' 'a '\\'' &'static x", "    'a      &'static x"),
        ];
        for (source, expected) in cases {
            assert_eq!(blank(source), expected, "{source}");
        }
    }

    #[test]
    fn functions_are_measured_from_fn_to_closing_brace() {
        let source = "struct A;\nimpl A {\n    fn one(&self, a: u8) {\n        if x { y }\n    }\n    fn none(&self);\n}\nfn two() {}\n";
        let found: Vec<_> =
            functions(&blank(source)).into_iter().map(|f| (f.name, f.line, f.lines, f.parameters)).collect();
        assert_eq!(found, [("one".to_owned(), 3, 3, 1), ("two".to_owned(), 8, 1, 0)]);
    }

    #[test]
    fn parameters_are_counted_without_self_and_nested_commas() {
        let cases = [
            ("fn f()", 0),
            ("fn f(&mut self)", 0),
            ("fn f(&self, a: Map<K, V>, b: (u8, u8))", 2),
            ("fn f<F: Fn(u8, u8) -> u8>(f: F, b: impl Fn(u8) -> u8,) -> u8", 2),
        ];
        for (head, expected) in cases {
            assert_eq!(parameters(head), expected, "{head}");
        }
    }
}
