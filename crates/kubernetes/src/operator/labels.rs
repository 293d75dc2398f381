//! Names under which the operator finds again what it made.

pub(crate) const JOB: &str = "peregrine.dev/job";
pub(crate) const COMPUTE: &str = "peregrine.dev/compute";
pub(crate) const WORKSPACE: &str = "peregrine.dev/workspace";
/// On replicas of deployments.
pub(crate) const ENDPOINT: &str = "peregrine.dev/endpoint";
pub(crate) const DEPLOYMENT: &str = "peregrine.dev/deployment";
pub(crate) const PART: &str = "peregrine.dev/part";
/// How many pods the gang has.
pub(crate) const PARTS: &str = "peregrine.dev/parts";
/// Keeps the scheduler off a pod until its whole gang fits.
pub(crate) const GATE: &str = "peregrine.dev/gang";
/// The part of a pod that Volcano made.
pub(crate) const VOLCANO_PART: &str = "volcano.sh/task-index";

/// Annotations: values that labels have no room for.
pub(crate) const JOB_NAME: &str = "peregrine.dev/job-name";
pub(crate) const DISPLAY_NAME: &str = "peregrine.dev/display-name";
pub(crate) const USER: &str = "peregrine.dev/user";
pub(crate) const PRIORITY: &str = "peregrine.dev/priority";
/// The Secret with the attempt's token.
pub(crate) const SECRET: &str = "peregrine.dev/secret";

/// On volume claims that every job of their namespace gets, and where.
pub(crate) const CLAIM: &str = "ml.azure.com/pvc";
pub(crate) const MOUNT_PATH: &str = "ml.azure.com/mountpath";

const LONGEST: usize = 63;

/// A text as a label's value: what labels do not take becomes `-`, and what is too long ends early.
pub(crate) fn value(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let all: String = text.chars().map(fit).take(LONGEST).collect();
    all.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// Whether a text may be the name of a label. Names of ours are not for others to set.
pub(crate) fn is_key(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part.len() <= LONGEST && value(part) == part;
    match text.split_once('/') {
        Some((prefix, name)) => {
            let dns = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            plain(name)
                && prefix.len() <= 253
                && value(prefix) == prefix
                && prefix.chars().all(dns)
                && prefix != "peregrine.dev"
        }
        None => plain(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_only_what_labels_may_hold() {
        for (text, expect) in [("a b", "a-b"), ("-x_", "x"), ("", ""), ("§", ""), (&"y".repeat(99), &"y".repeat(63))] {
            assert_eq!(value(text), expect, "{text}");
        }
        for (key, good) in [
            ("team", true),
            ("a.b/c", true),
            ("peregrine.dev/attempt", false),
            ("a/", false),
            ("A/b", false),
            ("a b", false),
        ] {
            assert_eq!(is_key(key), good, "{key}");
        }
    }
}
