//! The right side of `IN`: `('a', "b",)`.
//!
//! Texts are written as in the clients' own language: backslash escapes count, and texts side by side are one.

use super::FilterValue;
use crate::tracking::Bad;
use crate::tracking::text::shown;
use std::iter::Peekable;
use std::str::Chars;

/// The texts of a list, parentheses included in what is read. At least one.
pub(super) fn read(source: &str) -> Result<FilterValue, Bad> {
    let inner = source.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(ill_formed)?;
    let mut chars = inner.chars().peekable();
    let mut items = Vec::new();
    loop {
        skip_space(&mut chars);
        match chars.peek() {
            None => break,
            Some('\'' | '"') => items.push(texts(&mut chars)?),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '.') => {
                return Err(Bad::value(format!(
                    "While parsing a list in the query, expected string value, punctuation, or whitespace, but got \
                     different type in list: {}",
                    shown(source)
                )));
            }
            Some(_) => return Err(ill_formed()),
        }
        skip_space(&mut chars);
        match chars.next() {
            None => break,
            Some(',') => {}
            Some(_) => return Err(ill_formed()),
        }
    }
    if items.is_empty() {
        return Err(Bad::value(
            "While parsing a list in the query, expected a non-empty list of string values, but got empty list",
        ));
    }
    Ok(FilterValue::List(items))
}

fn ill_formed() -> Bad {
    Bad::value(
        "While parsing a list in the query, expected a non-empty list of string values, but got ill-formed list.",
    )
}

fn skip_space(chars: &mut Peekable<Chars>) {
    while chars.next_if(|c| c.is_whitespace()).is_some() {}
}

/// One or more texts side by side.
fn texts(chars: &mut Peekable<Chars>) -> Result<String, Bad> {
    let mut out = String::new();
    while let Some(quote) = chars.next_if(|c| matches!(c, '\'' | '"')) {
        loop {
            match chars.next().ok_or_else(ill_formed)? {
                c if c == quote => break,
                '\\' => escape(chars, &mut out)?,
                c => out.push(c),
            }
        }
        skip_space(chars);
    }
    Ok(out)
}

/// What follows a backslash. An unknown escape stays as it is written.
fn escape(chars: &mut Peekable<Chars>, out: &mut String) -> Result<(), Bad> {
    let c = chars.next().ok_or_else(ill_formed)?;
    match c {
        'n' => out.push('\n'),
        'r' => out.push('\r'),
        't' => out.push('\t'),
        '\\' | '\'' | '"' => out.push(c),
        '\n' => {}
        'x' => out.push(code(chars, 2)?),
        'u' => out.push(code(chars, 4)?),
        'U' => out.push(code(chars, 8)?),
        c => out.extend(['\\', c]),
    }
    Ok(())
}

fn code(chars: &mut Peekable<Chars>, digits: usize) -> Result<char, Bad> {
    let hex: String = chars.take(digits).collect();
    let whole = hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit());
    let number = whole.then(|| u32::from_str_radix(&hex, 16).ok()).flatten();
    number.and_then(char::from_u32).ok_or_else(ill_formed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_texts_in_either_quotes() {
        let cases: [(&str, &[&str]); 8] = [
            ("('a')", &["a"]),
            ("('a', \"b\",)", &["a", "b"]),
            ("( 'a' 'b' , 'c')", &["ab", "c"]),
            ("('')", &[""]),
            ("('it\\'s', 'it''s')", &["it's", "its"]),
            ("('a\\n\\x41\\u00e9\\q')", &["a\nAé\\q"]),
            ("('a), (b', 'c')", &["a), (b", "c"]),
            ("('é\u{2003}')", &["é\u{2003}"]),
        ];
        for (source, expect) in cases {
            let expect = expect.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(read(source), Ok(FilterValue::List(expect)), "{source}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for source in [
            "()",
            "( )",
            "(1, 2)",
            "('a', 1)",
            "(a)",
            "('a'",
            "('a' b)",
            "(,)",
            "('a',,)",
            "('\\xZZ')",
            "('\\ud800')",
            "('a\\')",
        ] {
            assert!(read(source).is_err(), "{source}");
        }
    }
}
