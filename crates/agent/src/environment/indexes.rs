//! Where packages come from, as the user has told pip, told again to uv.
//!
//! uv reads neither `pip.conf` nor `PIP_*`. Invariant: a variable the user has set for uv is never replaced.

use std::{collections::BTreeMap, path::Path};

/// pip's settings by option name, such as `index-url`. Of several places the strongest wins: environment, then a
/// command's own section, then the global one.
pub(crate) fn read_pip_config(listing: &str) -> BTreeMap<String, String> {
    let mut ranked: BTreeMap<String, (u8, String)> = BTreeMap::new();
    for line in listing.lines() {
        let Some((place, value)) = line.split_once('=') else { continue };
        let Some((section, option)) = place.rsplit_once('.') else { continue };
        let rank = match section {
            ":env:" => 2,
            "install" | "download" => 1,
            "global" => 0,
            _ => continue,
        };
        let value = unquoted(value.trim());
        match ranked.get(option) {
            Some((stronger, _)) if *stronger > rank => {}
            _ => drop(ranked.insert(option.to_owned(), (rank, value))),
        }
    }
    ranked.into_iter().map(|(option, (_, value))| (option, value)).collect()
}

/// The variables that give uv what pip has; `is_set` says which ones the user has set already.
pub(crate) fn for_uv(pip: &BTreeMap<String, String>, is_set: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut give = |name: &str, unless: &[&str], value: String| {
        if !value.is_empty() && !is_set(name) && !unless.iter().any(|other| is_set(other)) {
            variables.insert(name.to_owned(), value);
        }
    };
    let words =
        |option: &str| pip.get(option).map(|value| value.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
    give("UV_DEFAULT_INDEX", &["UV_INDEX_URL"], pip.get("index-url").cloned().unwrap_or_default());
    give("UV_INDEX", &["UV_EXTRA_INDEX_URL"], words("extra-index-url").join(" "));
    if !words("extra-index-url").is_empty() {
        // pip takes the best version that any index has, and files written for pip count on it.
        give("UV_INDEX_STRATEGY", &[], "unsafe-best-match".to_owned());
    }
    // pip only warns about a folder that is gone; uv fails.
    let links = words("find-links").into_iter().filter(|link| !link.starts_with('/') || Path::new(link).is_dir());
    give("UV_FIND_LINKS", &[], links.collect::<Vec<_>>().join(","));
    give("UV_INSECURE_HOST", &[], words("trusted-host").join(" "));
    give("SSL_CERT_FILE", &[], pip.get("cert").cloned().unwrap_or_default());
    give("UV_HTTP_TIMEOUT", &["UV_REQUEST_TIMEOUT"], timeout(pip));
    let proxy = pip.get("proxy").cloned().unwrap_or_default();
    give("HTTPS_PROXY", &["https_proxy", "ALL_PROXY", "all_proxy"], proxy.clone());
    give("HTTP_PROXY", &["http_proxy", "ALL_PROXY", "all_proxy"], proxy);
    variables
}

/// Whether pip is told to use no index, for which uv has a flag but no variable.
pub(crate) fn has_no_index(pip: &BTreeMap<String, String>) -> bool {
    pip.get("no-index").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false" | "no"))
}

/// Whether packages come from the public index: only then may a public index for other builds stand beside it.
pub(crate) fn is_public(variables: &BTreeMap<String, String>, is_set: impl Fn(&str) -> bool) -> bool {
    ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_OFFLINE", "UV_TORCH_BACKEND"]
        .iter()
        .all(|name| !variables.contains_key(*name) && !is_set(name))
}

fn timeout(pip: &BTreeMap<String, String>) -> String {
    let seconds = pip.get("timeout").or_else(|| pip.get("default-timeout")).map(String::as_str).unwrap_or_default();
    seconds.split('.').next().unwrap_or_default().to_owned()
}

/// pip prints values as Python literals: quotes around, `\n` between the values of a list.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let inner = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    inner.replace("\\n", " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = ":env:.cert='/etc/ca.pem'\n:env:.default-timeout='180'\nglobal.cert='/other.pem'\n\
        global.index-url='https://packages.example/simple'\ninstall.extra-index-url='\\nhttps://a/simple\\nhttps://b/simple'\n\
        global.find-links='/ /no/such/folder https://c/links'\nfreeze.timeout='1'\n";

    #[test]
    fn uv_is_told_what_pip_knows() {
        let told = for_uv(&read_pip_config(LISTING), |_| false);
        let told: Vec<String> = told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "SSL_CERT_FILE=/etc/ca.pem",
            "UV_DEFAULT_INDEX=https://packages.example/simple",
            "UV_FIND_LINKS=/,https://c/links",
            "UV_HTTP_TIMEOUT=180",
            "UV_INDEX=https://a/simple https://b/simple",
            "UV_INDEX_STRATEGY=unsafe-best-match",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_the_user_told_uv_stands() {
        let told =
            for_uv(&read_pip_config(LISTING), |name| matches!(name, "UV_INDEX_URL" | "SSL_CERT_FILE" | "UV_INDEX"));
        assert!(
            !told.contains_key("UV_DEFAULT_INDEX")
                && !told.contains_key("SSL_CERT_FILE")
                && !told.contains_key("UV_INDEX")
        );
    }

    #[test]
    fn an_index_of_the_users_own_is_not_public() {
        assert!(is_public(&BTreeMap::new(), |_| false));
        assert!(!is_public(&for_uv(&read_pip_config(LISTING), |_| false), |_| false));
        assert!(!is_public(&BTreeMap::new(), |name| name == "UV_OFFLINE"));
    }
}
