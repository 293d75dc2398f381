//! Text to tokens: names, quoted texts, numbers, comparators, a handful of words.
//!
//! Never fails: what has no meaning becomes `Other`, and the grammar refuses it by name. Quoted text
//! keeps its inner characters as they are: a doubled or escaped quote does not end it and is not unescaped.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare word, or one in backticks or double quotes.
    Name,
    /// Text in single quotes.
    Text,
    Integer,
    Float,
    /// `=`, `<=`, `LIKE`, also comparators no rule allows.
    Compare,
    /// A word of the language: `AND`, `IN`, `NULL`, …
    Word,
    Operator,
    Dot,
    Open,
    Close,
    Comma,
    Semicolon,
    Other,
}

/// A token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub start: usize,
}

impl Token<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Words that are never names unless quoted or beside a dot.
const WORDS: [&str; 18] = [
    "and", "or", "not", "in", "is", "null", "between", "asc", "desc", "by", "as", "case", "from", "select", "union",
    "using", "values", "where",
];
const COMPARING: [&str; 4] = ["like", "ilike", "rlike", "regexp"];

/// All tokens of a text, without the white space between them.
pub(crate) fn lex(source: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let after_dot = tokens.last().is_some_and(|last| last.kind == Kind::Dot && last.end() == at);
        let (kind, length) = token(&source[at..], after_dot);
        tokens.push(Token { kind, text: &source[at..at + length], start: at });
        at += length;
    }
    tokens
}

/// A name or text without the quotes around it.
pub(crate) fn unquote(text: &str) -> &str {
    let inner = |text: &str, quote: char| {
        let quoted = text.len() >= 2 && text.starts_with(quote) && text.ends_with(quote);
        quoted.then(|| text.len() - 1)
    };
    let text = inner(text, '\'').or_else(|| inner(text, '"')).map_or(text, |end| &text[1..end]);
    inner(text, '`').map_or(text, |end| &text[1..end])
}

fn token(rest: &str, after_dot: bool) -> (Kind, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if comment(rest) {
        return (Kind::Other, rest.find(['\n', '\r']).unwrap_or(rest.len()));
    }
    match first {
        '`' => quoted(rest, '`', false).map_or((Kind::Other, 1), |length| (Kind::Name, length)),
        '"' => quoted(rest, '"', true).map_or((Kind::Other, 1), |length| (Kind::Name, length)),
        '\'' => quoted(rest, '\'', true).map_or((Kind::Other, 1), |length| (Kind::Text, length)),
        '0'..='9' | '-' | '.' => number(rest).unwrap_or_else(|| mark_or_word(rest, after_dot)),
        _ => mark_or_word(rest, after_dot),
    }
}

fn comment(rest: &str) -> bool {
    ["--", "/*", "# "].iter().any(|opening| rest.starts_with(opening))
}

fn mark_or_word(rest: &str, after_dot: bool) -> (Kind, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    let run = |set: &str| rest.find(|c| !set.contains(c)).unwrap_or(rest.len());
    match first {
        '.' => (Kind::Dot, 1),
        '(' => (Kind::Open, 1),
        ')' => (Kind::Close, 1),
        ',' => (Kind::Comma, 1),
        ';' => (Kind::Semicolon, 1),
        '<' | '>' | '=' | '~' | '!' => (Kind::Compare, run("<>=~!")),
        '-' | '*' => (Kind::Operator, 1),
        '+' | '/' | '@' | '#' | '%' | '^' | '&' | '|' => (Kind::Operator, run("+/@#%^&|")),
        c if is_word(c) => word(rest, after_dot),
        c => (Kind::Other, c.len_utf8()),
    }
}

/// A bare word: a name beside a dot, otherwise perhaps a word of the language.
fn word(rest: &str, after_dot: bool) -> (Kind, usize) {
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let (text, tail) = rest.split_at(length);
    let before_dot =
        tail.trim_start().strip_prefix('.').is_some_and(|next| !next.starts_with(|c: char| c.is_ascii_digit()));
    let is_one_of = |words: &[&str], text: &str| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if after_dot || before_dot {
        return (Kind::Name, length);
    }
    if is_one_of(&COMPARING, text) {
        return (Kind::Compare, length);
    }
    if text.eq_ignore_ascii_case("not") {
        let next = tail.trim_start();
        let end = next.find(|c| !is_word(c)).unwrap_or(next.len());
        if next.len() < tail.len() && is_one_of(&COMPARING, &next[..end]) {
            return (Kind::Compare, rest.len() - next.len() + end);
        }
    }
    (if is_one_of(&WORDS, text) { Kind::Word } else { Kind::Name }, length)
}

/// `-12`, `1.5`, `.5`, `5.`, `1e-3`. A number runs into no letter: `1a` is a word.
fn number(rest: &str) -> Option<(Kind, usize)> {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(rest.starts_with('-'));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut kind = Kind::Integer;
    if rest[end..].starts_with('.') {
        let fraction = digits(end + 1);
        if whole + fraction == 0 {
            return None;
        }
        (kind, end) = (Kind::Float, end + 1 + fraction);
    } else if whole == 0 {
        return None;
    }
    if let Some(power) = exponent(&rest[end..]).filter(|_| whole > 0 && !rest[..end].ends_with('.')) {
        (kind, end) = (Kind::Float, end + power);
    }
    let runs_on = rest[end..].starts_with(|c: char| c.is_alphabetic() || c == '_');
    (!runs_on).then_some((kind, end))
}

/// The length of `e5` or `E-5`. A plus sign is not part of the language.
fn exponent(rest: &str) -> Option<usize> {
    let tail = rest.strip_prefix(['e', 'E'])?;
    let sign = usize::from(tail.starts_with('-'));
    let digits = tail[sign..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(1 + sign + digits)
}

/// The length of a text between quotes, or `None` when it never ends. A doubled quote, and an escaped
/// one where allowed, stand for themselves unless only they could end the text.
fn quoted(rest: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut at = 1;
    let mut last_resort = None;
    loop {
        let tail = &rest[at..];
        let Some(c) = tail.chars().next() else { return last_resort };
        let next_is_quote = tail[c.len_utf8()..].starts_with(quote);
        if c == quote && !next_is_quote {
            return Some(at + 1);
        }
        if next_is_quote && c == quote {
            last_resort = Some(at + 1);
            at += 2;
        } else if next_is_quote && c == '\\' && escapes {
            last_resort = Some(at + 2);
            at += 2;
        } else {
            at += c.len_utf8();
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        lex(source).iter().map(|token| format!("{:?} {}", token.kind, token.text)).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn tokens_end_where_their_kind_says() {
        let cases = [
            ("metrics.a>=-1.5e-3", "Name metrics | Dot . | Name a | Compare >= | Float -1.5e-3"),
            ("a = 1e+5", "Name a | Compare = | Name 1e | Operator + | Integer 5"),
            ("5. .5 5", "Float 5. | Float .5 | Integer 5"),
            ("1and 0x10", "Name 1and | Name 0x10"),
            ("tags.12 tags.1a", "Name tags | Float .12 | Name tags | Dot . | Name 1a"),
            (
                "and tags.and in.b NOT  LIKE not in",
                "Word and | Name tags | Dot . | Name and | Name in | Dot . | Name b | Compare NOT  LIKE | Word not | Word in",
            ),
            ("'it''s' 'it\\'s'", "Text 'it''s' | Text 'it\\'s'"),
            ("'a\\' x", "Text 'a\\' | Name x"),
            ("'a''", "Text 'a' | Other '"),
            ("'open", "Other ' | Name open"),
            ("\"a.b\" `c d` ``", "Name \"a.b\" | Name `c d` | Name ``"),
            ("a; -- rest", "Name a | Semicolon ; | Other -- rest"),
            ("a\u{a0}é日 $", "Name a | Name é日 | Other $"),
            ("(a,b)*2", "Open ( | Name a | Comma , | Name b | Close ) | Operator * | Integer 2"),
        ];
        for (source, expect) in cases {
            assert_eq!(shown(source), expect, "{source}");
        }
    }

    #[test]
    fn unquoting_takes_one_pair_and_backticks_inside() {
        for (text, expect) in [("'a'", "a"), ("\"a\"", "a"), ("`a`", "a"), ("'`a`'", "a"), ("'a\"", "'a\""), ("'", "'")]
        {
            assert_eq!(unquote(text), expect);
        }
    }
}
