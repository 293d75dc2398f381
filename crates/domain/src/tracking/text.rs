//! How values are shown inside messages: as a quoted literal or as ASCII JSON, the two notations clients know.
//!
//! Long values are cut, so a refused value of many megabytes never comes back whole.

/// The most characters of a client's value that a message repeats.
const SHOWN: usize = 500;

/// A text between quotes, control characters escaped: `'a'`, or `"it's"` when it holds a single quote.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in shown(text).chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// A JSON value in ASCII, cut when it is long.
pub fn json(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for c in shown(&value.to_string()).chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// `['a', 'b']`.
pub fn quoted_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", joined(items))
}

/// `('a', 'b')`.
pub fn quoted_tuple<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    format!("({})", joined(items))
}

/// `{'a', 'b'}`.
pub fn quoted_set<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    format!("{{{}}}", joined(items))
}

/// The text, cut to what a message may repeat.
pub fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

fn joined<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    items.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_reads_as_a_literal() {
        let cases = [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("it's \"x\"", "'it\\'s \"x\"'"),
            ("a\nb\\", "'a\\nb\\\\'"),
            ("\u{1}", "'\\x01'"),
            ("é", "'é'"),
        ];
        for (text, expect) in cases {
            assert_eq!(quoted(text), expect);
        }
        assert_eq!(quoted_tuple(["=", "!="]), "('=', '!=')");
    }

    #[test]
    fn json_in_messages_is_ascii_and_short() {
        assert_eq!(json(&"é\"".into()), "\"\\u00e9\\\"\"");
        assert_eq!(json(&"😀".into()), "\"\\ud83d\\ude00\"");
        assert_eq!(json(&"x".repeat(1_000_000).into()).len(), SHOWN + 3);
    }
}
