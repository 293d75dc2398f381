//! From a request's target to an endpoint and the path behind it.

/// Where a request wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'t> {
    /// The endpoint's name, or `None` for the one of the host.
    pub(crate) endpoint: Option<&'t str>,
    /// The path behind the endpoint's prefix, with its leading `/`.
    pub(crate) path: &'t str,
    /// With its `?`, or empty.
    pub(crate) query: &'t str,
    /// The host of an absolute target, which counts more than the field.
    pub(crate) authority: Option<&'t str>,
}

/// What the address of an endpoint starts with; the second is older and still used.
const PREFIXES: [&str; 2] = ["/api/v1/endpoint/", "/api/v1/service/"];

/// Takes a target apart. `None` for one that is no path, or that climbs.
pub(crate) fn parse(target: &str) -> Option<Target<'_>> {
    let (authority, rest) = match target.strip_prefix("http://").or_else(|| target.strip_prefix("https://")) {
        Some(rest) => {
            let end = rest.find('/')?;
            (Some(&rest[..end]), &rest[end..])
        }
        None => (None, target),
    };
    if !rest.starts_with('/') || rest.bytes().any(|b| !(0x21..0x7f).contains(&b) || b == b'#') {
        return None;
    }
    let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
    if climbs(path) {
        return None;
    }
    let behind = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    Some(match behind {
        Some(named) => {
            let (name, path) = named.split_at(named.find('/').unwrap_or(named.len()));
            Target { endpoint: Some(name), path, query, authority }
        }
        None => Target { endpoint: None, path, query, authority },
    })
}

/// Whether a part of the path is `..`, in any spelling: what is behind the router might resolve it to somewhere else.
fn climbs(path: &str) -> bool {
    if !path.contains("..") && !path.contains('%') && !path.contains('\\') {
        return false;
    }
    let plain =
        path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    plain.split('/').any(|part| part == "..") || plain.contains("%00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_apart() {
        let at = |endpoint, path, query| Some(Target { endpoint, path, query, authority: None });
        for (text, expected) in [
            ("/api/v1/endpoint/iris/score", at(Some("iris"), "/score", "")),
            ("/api/v1/service/iris/score?x=1", at(Some("iris"), "/score", "?x=1")),
            ("/api/v1/endpoint/iris", at(Some("iris"), "", "")),
            ("/api/v1/endpoint/llm/v1/chat/completions", at(Some("llm"), "/v1/chat/completions", "")),
            ("/score", at(None, "/score", "")),
            ("/a%20b..c", at(None, "/a%20b..c", "")),
            ("http://h:1/score", Some(Target { authority: Some("h:1"), ..at(None, "/score", "").unwrap() })),
            ("score", None),
            ("*", None),
            ("", None),
            ("/a/../b", None),
            ("/a/%2E%2e/b", None),
            ("/a/..%2fb", None),
            ("/a\\..\\b", None),
            ("/a%00", None),
            ("/a#b", None),
            ("/a\u{e9}", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
