//! Tokens to pieces, pieces to comparisons.
//!
//! Pieces are what stands between separators: dotted paths, values, parenthesised lists. A filter is
//! comparisons with `AND` between them; anything left over is told to the client as it was written.

use super::Subject;
use super::lex::{self, Token};
use crate::tracking::Bad;
use crate::tracking::text::{quoted, shown};

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or names with dots between them.
    Path,
    Text,
    Integer,
    Float,
    /// Something in parentheses.
    List,
    /// An arithmetic expression or a call: well-formed, never allowed.
    Operation,
    Compare,
    Word,
    Operator,
    Comma,
    Semicolon,
    /// A whole comparison.
    Comparison,
    Other,
}

/// A stretch of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub kind: Kind,
    pub text: &'a str,
    start: usize,
}

impl<'a> Piece<'a> {
    /// Whether this is the given word of the language.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn is_operand(&self) -> bool {
        matches!(self.kind, Kind::Path | Kind::Text | Kind::Integer | Kind::Float | Kind::List | Kind::Operation)
    }

    /// From the start of this piece to the end of another.
    fn through(&self, last: &Piece, kind: Kind, source: &'a str) -> Piece<'a> {
        Piece { kind, text: &source[self.start..last.end()], start: self.start }
    }
}

/// A comparison as written: left side, comparator in upper case, right side unless it is `IS [NOT] NULL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    pub whole: Piece<'a>,
    pub left: Piece<'a>,
    pub comparator: String,
    pub right: Option<Piece<'a>>,
}

/// More tokens than this are refused, whatever they say.
const MAX_TOKENS: usize = 10_000;

/// The comparisons of a filter, or what in it is none.
pub(crate) fn comparisons(subject: Subject, source: &str) -> Result<Vec<Shape<'_>>, Bad> {
    let pieces = pieces(source).ok_or_else(|| Bad::value(format!("Error on parsing filter '{}'", shown(source))))?;
    if pieces.is_empty() {
        return Err(Bad::value(format!("Invalid filter '{}'. Could not be parsed.", shown(source))));
    }
    if pieces.iter().rev().skip(1).any(|piece| piece.kind == Kind::Semicolon) {
        return Err(several(subject, source));
    }
    let mut shapes = Vec::new();
    let pieces = compare(combine(pieces, source), source, &mut shapes);
    let pieces = alias(pieces, source);
    let strays = join(&pieces, source, &mut shapes);
    if strays.is_empty() {
        shapes.sort_by_key(|shape| shape.whole.start);
        return Ok(shapes);
    }
    Err(Bad::value(leftovers(subject, source, &strays)))
}

/// The pieces of a text: paths, values and lists put together. `None` when there are too many.
pub(crate) fn pieces(source: &str) -> Option<Vec<Piece<'_>>> {
    let tokens = lex::lex(source);
    if tokens.len() > MAX_TOKENS {
        return None;
    }
    let closing = closings(&tokens);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (kind, last) = piece(&tokens, at, &closing);
        let start = tokens[at].start;
        let new = Piece { kind, text: &source[start..tokens[last].end()], start };
        match pieces.last().copied() {
            Some(name) if name.kind == Kind::Path && kind == Kind::List => {
                pieces.pop();
                pieces.push(name.through(&new, Kind::Operation, source));
            }
            _ => pieces.push(new),
        }
        at = last + 1;
    }
    Some(pieces)
}

/// The piece that starts at a token, and its last token.
fn piece(tokens: &[Token], at: usize, closing: &[Option<usize>]) -> (Kind, usize) {
    match tokens[at].kind {
        lex::Kind::Name => (Kind::Path, path_end(tokens, at)),
        lex::Kind::Open => closing[at].map_or((Kind::Other, at), |close| (Kind::List, close)),
        lex::Kind::Text => (Kind::Text, at),
        lex::Kind::Integer => (Kind::Integer, at),
        lex::Kind::Float => (Kind::Float, at),
        lex::Kind::Compare => (Kind::Compare, at),
        lex::Kind::Word => (Kind::Word, at),
        lex::Kind::Operator => (Kind::Operator, at),
        lex::Kind::Comma => (Kind::Comma, at),
        lex::Kind::Semicolon => (Kind::Semicolon, at),
        lex::Kind::Dot | lex::Kind::Close | lex::Kind::Other => (Kind::Other, at),
    }
}

fn path_end(tokens: &[Token], mut at: usize) -> usize {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    while kind(at + 1) == Some(lex::Kind::Dot) {
        match kind(at + 2) {
            Some(lex::Kind::Name | lex::Kind::Text) => at += 2,
            _ => return at + 1,
        }
    }
    at
}

/// For each opening parenthesis the token that closes it.
fn closings(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut closing = vec![None; tokens.len()];
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            lex::Kind::Open => open.push(at),
            lex::Kind::Close => {
                if let Some(opening) = open.pop() {
                    closing[opening] = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

/// Joins operands around operators into one operation.
fn combine<'a>(pieces: Vec<Piece<'a>>, source: &'a str) -> Vec<Piece<'a>> {
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = pieces.into_iter().peekable();
    while let Some(piece) = rest.next() {
        let left = out.last().copied().filter(Piece::is_operand);
        let right = rest.peek().copied().filter(Piece::is_operand);
        match (piece.kind, left, right) {
            (Kind::Operator, Some(left), Some(right)) => {
                rest.next();
                out.pop();
                out.push(left.through(&right, Kind::Operation, source));
            }
            _ => out.push(piece),
        }
    }
    out
}

/// Joins operands around a comparator; the shapes are set aside.
fn compare<'a>(pieces: Vec<Piece<'a>>, source: &'a str, shapes: &mut Vec<Shape<'a>>) -> Vec<Piece<'a>> {
    let is_side = |piece: &Piece| piece.is_operand() || piece.is_word("null");
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = pieces.into_iter().peekable();
    while let Some(piece) = rest.next() {
        let left = out.last().copied().filter(|left| is_side(left) || left.kind == Kind::Comparison);
        let right = rest.peek().copied().filter(is_side);
        match (piece.kind, left, right) {
            (Kind::Compare, Some(left), Some(right)) => {
                rest.next();
                out.pop();
                let whole = left.through(&right, Kind::Comparison, source);
                // In `a > 1 > 2` the first comparison is the left side of the second.
                if left.kind == Kind::Comparison {
                    shapes.pop();
                }
                shapes.push(Shape { whole, left, comparator: piece.text.to_uppercase(), right: Some(right) });
                out.push(whole);
            }
            _ => out.push(piece),
        }
    }
    out
}

/// Joins a name to what it stands behind, and what commas connect: SQL would read them as one, so they are told as one.
fn alias<'a>(pieces: Vec<Piece<'a>>, source: &'a str) -> Vec<Piece<'a>> {
    let named = |piece: &Piece| (piece.is_operand() && piece.kind != Kind::Text) || piece.kind == Kind::Comparison;
    let listed = |piece: &Piece| piece.is_operand() || matches!(piece.kind, Kind::Comparison | Kind::Other);
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = pieces.into_iter().peekable();
    while let Some(piece) = rest.next() {
        let joined = match (piece.kind, out.last().copied(), rest.peek().copied()) {
            (Kind::Path, Some(last), _) if named(&last) => Some((last, piece)),
            (Kind::Comma, Some(last), Some(next)) if listed(&last) && listed(&next) => {
                rest.next();
                Some((last, next))
            }
            _ => None,
        };
        match joined {
            Some((first, last)) => {
                out.pop();
                out.push(first.through(&last, Kind::Other, source));
            }
            None => out.push(piece),
        }
    }
    out
}

/// Finds `IN (…)`, `NOT IN (…)`, `IS NULL` and `IS NOT NULL`; returns what is neither comparison nor `AND`.
fn join<'a>(pieces: &[Piece<'a>], source: &'a str, shapes: &mut Vec<Shape<'a>>) -> Vec<&'a str> {
    let mut strays = Vec::new();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        if let Some((length, comparator)) = worded(&pieces[at..]) {
            let last = &pieces[at + length - 1];
            let whole = piece.through(last, Kind::Comparison, source);
            let right = (last.kind == Kind::List).then_some(*last);
            shapes.push(Shape { whole, left: *piece, comparator: comparator.to_owned(), right });
            at += length;
            continue;
        }
        if piece.kind != Kind::Comparison && !piece.is_word("and") {
            strays.push(piece.text);
        }
        at += 1;
    }
    strays
}

/// A comparison spelled in words: how many pieces it takes, and its comparator.
fn worded(pieces: &[Piece]) -> Option<(usize, &'static str)> {
    let is = |at: usize, word: &str| pieces.get(at).is_some_and(|piece| piece.is_word(word));
    let list = |at: usize| pieces.get(at).is_some_and(|piece| piece.kind == Kind::List);
    if pieces.first()?.kind != Kind::Path {
        return None;
    }
    let spelled = [
        (is(1, "in") && list(2), 3, "IN"),
        (is(1, "not") && is(2, "in") && list(3), 4, "NOT IN"),
        (is(1, "is") && is(2, "null"), 3, "IS NULL"),
        (is(1, "is") && is(2, "not") && is(3, "null"), 4, "IS NOT NULL"),
    ];
    spelled.into_iter().find(|(found, ..)| *found).map(|(_, length, comparator)| (length, comparator))
}

/// The refusal of a filter made of several statements.
fn several(subject: Subject, source: &str) -> Bad {
    let source = quoted(source);
    Bad::value(match subject {
        Subject::LoggedModels => format!("Invalid filter string: {source}. Expected a single SQL expression."),
        _ => format!("Search filter contained multiple expression {source}. Provide AND-ed expression list."),
    })
}

fn leftovers(subject: Subject, source: &str, strays: &[&str]) -> String {
    let strays = || strays.iter().map(|stray| shown(stray));
    let told = match subject {
        Subject::Runs => strays().map(|stray| format!("'{stray}'")).collect::<Vec<_>>().join(", "),
        Subject::LoggedModels => {
            return format!(
                "Invalid filter string: {}. Expected a list of comparisons separated by 'AND' (e.g. 'metrics.loss > 0.1 \
                 AND params.lr = 0.01').",
                quoted(source)
            );
        }
        _ => strays().collect::<Vec<_>>().join(", "),
    };
    format!("Invalid clause(s) in filter string: {}", shown(&told))
}
