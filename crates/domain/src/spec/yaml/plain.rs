//! The parser's complaints in words a user can act on.

/// What is wrong and what to do, for one of the parser's messages.
pub(super) fn in_plain_words(info: &str) -> (String, &'static str) {
    for (part, message, fix) in TABLE {
        if info.contains(part) {
            return ((*message).to_owned(), fix);
        }
    }
    (format!("the YAML cannot be read here: {info}"), "check the indentation, quotes and brackets around this place")
}

/// A piece of the parser's message, ours, and the fix. The first that fits is used.
const TABLE: &[(&str, &str, &str)] = &[
    ("recursion limit", "lists and maps are nested more than 100 deep", "flatten the file"),
    (
        "mapping values are not allowed",
        "a `:` stands where no key can be",
        "put a value that contains `: ` in quotes, correct the indentation, or close a bracket above",
    ),
    ("mapping keys are not allowed", "a key stands where none can be", "correct the indentation"),
    (
        "illegal placement of ':'",
        "a `:` stands where no key can be",
        "put a value that contains `: ` in quotes, correct the indentation, or close a bracket above",
    ),
    (
        "simple key expect",
        "this line is not a key: a `:` is missing",
        "write `key: value`, or indent the line to continue the text above",
    ),
    (
        "did not find expected key",
        "this line does not line up with the keys above it",
        "give it the same indentation as they have",
    ),
    (
        "expected '-' indicator",
        "this line does not line up with the list above it",
        "start it with `- ` at the same indentation",
    ),
    (
        "block sequence entries are not allowed",
        "a list item stands where none can be",
        "start the list on a line of its own",
    ),
    (
        "expected ',' or '}'",
        "a `{` is opened and not closed here",
        "add the missing `}` or `,`, or quote a text that begins with `{`",
    ),
    (
        "expected ',' or ']'",
        "a `[` is opened and not closed here",
        "add the missing `]` or `,`, or quote a text that begins with `[`",
    ),
    ("misplaced bracket", "a bracket is closed that was never opened", "remove it, or quote the text"),
    ("unexpected end of stream", "a quote is opened and never closed", "close the quote"),
    (
        "invalid indentation in quoted scalar",
        "a quoted text goes on with too little indentation, or its quote is never closed",
        "close the quote, or indent the following lines",
    ),
    ("unexpected document indicator", "a quote is opened and never closed", "close the quote"),
    (
        "trailing content after",
        "there is text after a closing quote",
        "remove it, or use the other kind of quote around the whole",
    ),
    (
        "unknown escape character",
        "a `\\` in double quotes is followed by a letter that means nothing",
        "use single quotes, or write `\\\\`",
    ),
    (
        "hexadecimal number",
        "a `\\x` or `\\u` in double quotes needs hexadecimal digits",
        "use single quotes, or write `\\\\`",
    ),
    ("tab", "a tab stands where spaces are needed", "indent with spaces"),
    (
        "unknown anchor",
        "an alias names an anchor that is not defined above it",
        "define it with `&name` first, or quote a text that begins with `*`",
    ),
    ("anchor or alias", "a `&` or `*` is not followed by a name", "quote a text that begins with `&` or `*`"),
    (
        "wrongly indented line in block scalar",
        "a line of the text block has too little indentation",
        "indent every line of the block alike",
    ),
    ("expected comment or line break", "there is text after `|` or `>`", "start the text on the next line"),
    ("comment intercepting", "a comment stands in the middle of a text", "move the comment, or quote the text"),
    ("found unprintable character", "there is a character that YAML cannot hold", "save the file as plain UTF-8 text"),
    ("plain scalar cannot start", "a text begins with a sign that means something else", "put the text in quotes"),
    ("any valid token", "a text begins with `@`, `%` or a backquote", "put the text in quotes"),
    (
        "invalid indentation",
        "the indentation does not fit the lines above",
        "give keys of one map the same indentation",
    ),
    ("unexpected eof", "the file ends in the middle of a value", "complete the last line"),
];
