//! MLTable files: which files one names, and what their rows say.
//!
//! Invariant: nothing here opens a file; whoever has one hands in its text.

use crate::{
    pipeline::items_in,
    spec::yaml::{Node, Raw},
};
use serde_json::{Map, Value};

/// What the file that makes a folder a table is called.
pub const FILE: &str = "MLTable";

/// What an MLTable names: the files of one entry of `paths`.
#[derive(Debug, PartialEq)]
pub struct Named {
    pub text: String,
    pub is_pattern: bool,
}

/// All that it names.
pub fn paths(table: &Node) -> Result<Vec<Named>, String> {
    let Some(Node { value: Raw::List(items), .. }) = table.get("paths") else {
        return Err("it has no list `paths`".to_owned());
    };
    let named = |item: &Node| {
        let found =
            ["file", "folder", "pattern"].into_iter().find_map(|kind| Some((kind, item.get(kind)?.scalar_text()?)));
        found.map(|(kind, text)| Named { text: text.trim().to_owned(), is_pattern: kind == "pattern" })
    };
    items
        .iter()
        .map(|item| named(item).ok_or_else(|| "each of `paths` needs `file`, `folder` or `pattern`".to_owned()))
        .collect()
}

/// The folder before the first wildcard, and the rest.
pub fn split_pattern(text: &str, is_pattern: bool) -> (&str, Option<&str>) {
    let Some(wild) = text.find(['*', '?', '[']).filter(|_| is_pattern) else { return (text, None) };
    match text[..wild].rfind('/') {
        Some(slash) => (&text[..slash], Some(&text[slash + 1..])),
        None => ("", Some(text)),
    }
}

/// `*` and `?` stay within one part of a name, `**` spans any number of parts.
pub fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    // `reached[i]`: the parts of the name so far can be used up by the first `i` parts of the pattern.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_spans(&pattern, &mut reached);
    for part in name.split('/') {
        let mut next = vec![false; pattern.len() + 1];
        for (i, piece) in pattern.iter().enumerate().filter(|(i, _)| reached[*i]) {
            if *piece == "**" {
                next[i] = true;
            } else if fits_part(piece.as_bytes(), part.as_bytes()) {
                next[i + 1] = true;
            }
        }
        reached = next;
        skip_spans(&pattern, &mut reached);
    }
    reached[pattern.len()]
}

/// A `**` may span nothing.
fn skip_spans(pattern: &[&str], reached: &mut [bool]) {
    for (i, piece) in pattern.iter().enumerate() {
        reached[i + 1] |= reached[i] && *piece == "**";
    }
}

/// Goes back only to the last `*`, so a hostile pattern costs at most the product of both lengths.
fn fits_part(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match back {
                Some((star, start)) => {
                    (p, n) = (star + 1, start + 1);
                    back = Some((star, start + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// The rows of one of its files, a map each: read as `transformations` says, else by the end of the file's name.
pub fn rows(transformations: &Value, name: &str, text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let mut delimited = name.ends_with(".csv").then(Delimited::default);
    for (step, options) in steps(transformations) {
        match step {
            "read_json_lines" => delimited = None,
            "read_delimited" => delimited = Some(Delimited::of(options)?),
            // Rows become texts again, whatever they are called in between.
            "convert_column_types" => {}
            other => {
                return Err(format!("the MLTable's `{other}` is not carried out here; list the rows that are meant"));
            }
        }
    }
    let text = text.trim_start_matches('\u{feff}');
    if let Some(delimited) = delimited {
        return delimited.rows(text).map_err(|why| format!("`{name}`: {why}"));
    }
    let items = items_in(text).ok_or_else(|| format!("`{name}` holds no list of maps in JSON, and no map a line"))?;
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

/// Names and options of the transformations: a name alone, or a map of one.
fn steps(transformations: &Value) -> impl Iterator<Item = (&str, &Value)> {
    transformations.as_array().into_iter().flatten().flat_map(|step| match step {
        Value::String(name) => vec![(name.as_str(), &Value::Null)],
        Value::Object(one) => one.iter().map(|(name, options)| (name.as_str(), options)).collect(),
        _ => Vec::new(),
    })
}

/// How rows are written as text.
struct Delimited {
    delimiter: char,
    has_header: bool,
}

impl Default for Delimited {
    fn default() -> Delimited {
        Delimited { delimiter: ',', has_header: true }
    }
}

impl Delimited {
    fn of(options: &Value) -> Result<Delimited, String> {
        let mut said = Delimited::default();
        if let Some(text) = options["delimiter"].as_str() {
            let mut all = text.chars();
            let (Some(one), None) = (all.next(), all.next()) else {
                return Err(format!("the MLTable's `delimiter` `{text}` is not one character"));
            };
            said.delimiter = one;
        }
        said.has_header = options["header"] != "no_header" && options["header"] != false;
        Ok(said)
    }

    /// Every row under the names of the first, or `Column1` and so on. A cell without text gives nothing.
    fn rows(&self, text: &str) -> Result<Vec<Map<String, Value>>, String> {
        let mut lines = self.cells(text)?.into_iter();
        let mut header = if self.has_header { lines.next().unwrap_or_default() } else { Vec::new() };
        let mut rows = Vec::new();
        for (at, cells) in lines.enumerate() {
            if !self.has_header {
                header.extend((header.len()..cells.len()).map(|column| format!("Column{}", column + 1)));
            }
            if cells.len() > header.len() {
                return Err(format!("row {} has {} cells for {} columns", at + 1, cells.len(), header.len()));
            }
            let told = header.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
            rows.push(told.map(|(name, cell)| (name.trim().to_owned(), Value::String(cell))).collect());
        }
        Ok(rows)
    }

    /// The cells of each line that has any. Within quotes a delimiter and the end of a line are text, and `""` is a quote.
    fn cells(&self, text: &str) -> Result<Vec<Vec<String>>, String> {
        let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
        let mut rest = text.chars().chain((!text.ends_with('\n')).then_some('\n')).peekable();
        while let Some(c) = rest.next() {
            match c {
                '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
                '"' if quoted || cell.is_empty() => quoted = !quoted,
                '\r' if !quoted && rest.peek() == Some(&'\n') => {}
                '\n' if !quoted => {
                    line.push(std::mem::take(&mut cell));
                    let whole = std::mem::take(&mut line);
                    lines.extend(Some(whole).filter(|whole| whole.iter().any(|cell| !cell.is_empty())));
                }
                c if c == self.delimiter && !quoted => line.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        if quoted { Err("a quote is never closed".to_owned()) } else { Ok(lines) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_fit_as_people_expect() {
        for (pattern, name, fit) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "d/a.csv", false),
            ("**/*.csv", "d/e/a.csv", true),
            ("**/*.csv", "a.csv", true),
            ("d/**", "d/e/f", true),
            ("a?.txt", "ab.txt", true),
            ("a?.txt", "a.txt", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
        assert!(!fits(&format!("{}c", "a*".repeat(60)), &"a".repeat(5000)), "in reasonable time");
        assert!(!fits(&format!("{}c", "**/a/".repeat(30)), &"a/".repeat(200)), "in reasonable time");
    }

    #[test]
    fn a_pattern_starts_at_its_first_wildcard() {
        assert_eq!(split_pattern("a/b*/c", true), ("a", Some("b*/c")));
        assert_eq!(split_pattern("*.csv", true), ("", Some("*.csv")));
        assert_eq!(split_pattern("a*b", false), ("a*b", None));
    }

    fn said(transformations: &Value, name: &str, text: &str) -> Result<String, String> {
        rows(transformations, name, text).map(|rows| Value::from_iter(rows.into_iter().map(Value::Object)).to_string())
    }

    #[test]
    fn rows_are_read_as_the_table_says() {
        let by_name = |name: &str, text: &str| said(&Value::Null, name, text).unwrap();
        let written = "\u{feff}n,note\r\n1,\"a, \"\"b\"\"\nc\"\n\n2,\n";
        assert_eq!(by_name("a.csv", written), r#"[{"n":"1","note":"a, \"b\"\nc"},{"n":"2"}]"#);
        assert_eq!(by_name("a.jsonl", "{\"n\": 1}\n{\"n\": 2}"), r#"[{"n":1},{"n":2}]"#);
        assert_eq!(by_name("a.json", "[{\"n\": 1}]"), r#"[{"n":1}]"#);
        let bare = json!([{"read_delimited": {"delimiter": "|", "header": "no_header"}}, {"convert_column_types": []}]);
        assert_eq!(said(&bare, "a.txt", "x|1\n").unwrap(), r#"[{"Column1":"x","Column2":"1"}]"#);
        assert_eq!(said(&json!(["read_json_lines"]), "a.csv", "{\"n\": 1}").unwrap(), r#"[{"n":1}]"#);
    }

    #[test]
    fn rows_that_cannot_be_read_are_told() {
        for (transformations, name, text, says) in [
            (json!([{"filter": "col('n') > 1"}]), "a.csv", "n\n1", "`filter` is not carried out"),
            (json!(["read_parquet"]), "a", "n\n1", "`read_parquet` is not carried out"),
            (json!([{"read_delimited": {"delimiter": "ab"}}]), "a.csv", "", "not one character"),
            (Value::Null, "a.csv", "n\n1,2", "row 1 has 2 cells for 1 columns"),
            (Value::Null, "a.csv", "n\n\"1", "never closed"),
            (Value::Null, "a.parquet", "PAR1", "holds no list of maps"),
        ] {
            let why = said(&transformations, name, text).unwrap_err();
            assert!(why.contains(says), "no `{says}` in {why}");
        }
    }
}
