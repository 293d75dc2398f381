//! `${{ ... }}` and `$[[ ... ]]` in commands and paths.
//!
//! A value takes its expression's place verbatim: the command is the user's own, and so is its quoting.
//! An optional part, `$[[ --flag ${{inputs.x}} ]]`, vanishes whole when an input in it has no value.

/// What an expression refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `${{inputs.x}}`
    Input(String),
    /// `${{outputs.x}}`
    Output(String),
    /// `${{search_space.x}}`, in a sweep's trial.
    SearchSpace(String),
    /// Anything else, such as `${{name}}` or `${{default_datastore}}`.
    Other(String),
}

/// An expression that has no value, or no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("`{expression}` has no value")]
    NoValue { expression: String },
    #[error("`{expression}` is not closed with `}}}}`")]
    Unclosed { expression: String },
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reference::Input(name) => write!(f, "${{{{inputs.{name}}}}}"),
            Reference::Output(name) => write!(f, "${{{{outputs.{name}}}}}"),
            Reference::SearchSpace(name) => write!(f, "${{{{search_space.{name}}}}}"),
            Reference::Other(text) => write!(f, "${{{{{text}}}}}"),
        }
    }
}

/// Every reference in the text, in order, those in optional parts included.
pub fn references(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    for part in parts(text) {
        match part {
            Part::Expression(reference) => found.push(reference),
            Part::Optional(inner) => found.extend(references(inner)),
            Part::Text(_) | Part::Unclosed(_) => {}
        }
    }
    found
}

/// What stands between the braces of every expression in the text, optional parts included.
pub fn inner(text: &str) -> Vec<String> {
    let shown = |reference: Reference| match reference {
        Reference::Input(name) => format!("inputs.{name}"),
        Reference::Output(name) => format!("outputs.{name}"),
        Reference::SearchSpace(name) => format!("search_space.{name}"),
        Reference::Other(text) => text,
    };
    references(text).into_iter().map(shown).collect()
}

/// The references that must have a value: those outside optional parts. Fails on one that is not closed.
pub fn required(text: &str) -> Result<Vec<Reference>, Unresolved> {
    let mut found = Vec::new();
    for part in parts(text) {
        match part {
            Part::Expression(reference) => found.push(reference),
            Part::Unclosed(expression) => return Err(unclosed(expression)),
            Part::Text(_) | Part::Optional(_) => {}
        }
    }
    Ok(found)
}

/// Puts values in the place of expressions. `lookup` answers `None` for what has no value.
pub fn expand(text: &str, lookup: &dyn Fn(&Reference) -> Option<String>) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Unclosed(expression) => return Err(unclosed(expression)),
            Part::Expression(reference) => match lookup(&reference) {
                Some(value) => out.push_str(&value),
                None => return Err(Unresolved::NoValue { expression: reference.to_string() }),
            },
            Part::Optional(inner) => {
                let absent = |r: &Reference| matches!(r, Reference::Input(_)) && lookup(r).is_none();
                if !references(inner).iter().any(absent) {
                    out.push_str(expand(inner, lookup)?.trim());
                }
            }
        }
    }
    Ok(out)
}

enum Part<'t> {
    Text(&'t str),
    Expression(Reference),
    /// The inside of `$[[ ]]`.
    Optional(&'t str),
    /// From `${{` to the end of the line.
    Unclosed(&'t str),
}

/// Splits the text in one pass: each opening looks no further than the next of its kind.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(start) = next_opening(rest) {
        let (before, from) = rest.split_at(start);
        let (opening, inside) = from.split_at(3);
        parts.push(Part::Text(before));
        let optional = opening == "$[[";
        let Some(inner) = up_to(inside, if optional { "]]" } else { "}}" }, opening) else {
            parts.push(match !optional && names_a_value(inside) {
                true => Part::Unclosed(from.lines().next().unwrap_or(from)),
                false => Part::Text(opening),
            });
            rest = inside;
            continue;
        };
        parts.push(if optional { Part::Optional(inner) } else { Part::Expression(reference(inner)) });
        rest = &inside[inner.len() + 2..];
    }
    parts.push(Part::Text(rest));
    parts
}

fn next_opening(text: &str) -> Option<usize> {
    text.match_indices('$')
        .map(|(at, _)| at)
        .find(|at| text[*at..].starts_with("${{") || text[*at..].starts_with("$[["))
}

/// The text before `close`, unless `opening` comes first or neither comes.
fn up_to<'t>(text: &'t str, close: &str, opening: &str) -> Option<&'t str> {
    let ends = |(at, _): &(usize, char)| text[*at..].starts_with(close) || text[*at..].starts_with(opening);
    let (at, _) = text.char_indices().find(ends)?;
    text[at..].starts_with(close).then_some(&text[..at])
}

fn names_a_value(inner: &str) -> bool {
    let inner = inner.trim_start();
    inner.starts_with("inputs") || inner.starts_with("outputs")
}

fn reference(inner: &str) -> Reference {
    let inner = inner.trim();
    let named = |(kind, name): (&str, &str)| {
        let name = name.trim().to_owned();
        match kind.trim() {
            "inputs" => Some(Reference::Input(name)),
            "outputs" => Some(Reference::Output(name)),
            "search_space" => Some(Reference::SearchSpace(name)),
            _ => None,
        }
    };
    inner.split_once('.').and_then(named).unwrap_or_else(|| Reference::Other(inner.to_owned()))
}

fn unclosed(expression: &str) -> Unresolved {
    Unresolved::Unclosed { expression: super::yaml::clip(expression) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(reference: &Reference) -> Option<String> {
        match reference {
            Reference::Input(name) if name == "lr" => Some("0.1".to_owned()),
            Reference::Output(name) if name == "model" => Some("/out/my model".to_owned()),
            Reference::Other(name) if name == "name" => Some("job_1".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn values_take_the_place_of_expressions_verbatim() {
        for (text, expected) in [
            ("train --lr ${{inputs.lr}}", "train --lr 0.1"),
            ("train --lr ${{ inputs.lr }} > ${{outputs.model}}/x", "train --lr 0.1 > /out/my model/x"),
            ("${{name}}", "job_1"),
            ("a $[[ --lr ${{inputs.lr}} ]]b", "a --lr 0.1b"),
            ("a $[[--gone ${{inputs.gone}} --lr ${{inputs.lr}}]] b", "a  b"),
            ("echo ${HOME} ${{ $[ 1 + 1 ] $[[ x", "echo ${HOME} ${{ $[ 1 + 1 ] $[[ x"),
            ("ü ${{inputs.lr}} 日本", "ü 0.1 日本"),
            ("${{${{${{inputs.lr}}", "${{${{0.1"),
            ("", ""),
        ] {
            assert_eq!(expand(text, &lookup).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn an_expression_without_value_or_end_is_named() {
        let message = |text| expand(text, &lookup).unwrap_err().to_string();
        assert_eq!(message("x ${{ inputs.epochs }}"), "`${{inputs.epochs}}` has no value");
        assert_eq!(message("x ${{inputs.lr"), "`${{inputs.lr` is not closed with `}}`");
        assert_eq!(message("${{inputs.a ${{inputs.lr}}"), "`${{inputs.a ${{inputs.lr}}` is not closed with `}}`");
        assert!(expand(&"${{$[[".repeat(300_000), &lookup).is_ok());
        assert_eq!(message("${{matrix.os}}"), "`${{matrix.os}}` has no value");
    }

    #[test]
    fn references_are_listed_and_the_optional_ones_are_not_required() {
        let text = "${{inputs.a}} $[[ ${{inputs.b}} ]] ${{outputs.c}} ${{search_space.d}} ${{name}}";
        let shown: Vec<_> = references(text).iter().map(Reference::to_string).collect();
        assert_eq!(shown, ["${{inputs.a}}", "${{inputs.b}}", "${{outputs.c}}", "${{search_space.d}}", "${{name}}"]);
        assert_eq!(required(text).unwrap().len(), 4);
        assert!(required("${{outputs.c").is_err());
    }
}
