//! Volume claims that every job of a namespace gets, and which of them it does not.
//!
//! A pod with two volumes at one place, or one where the agent has its own, is refused by the API server, and with it every
//! job of the namespace. Invariant: a claim that cannot be mounted costs nobody else theirs, and says why.

use super::pods;

/// A volume claim with the label that asks for it to be mounted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) path: String,
}

/// The claims of a namespace, sorted out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) mounted: Vec<Claim>,
    /// One reason for each that is not.
    pub(crate) left_out: Vec<String>,
}

/// Places without which a container is none.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Which of these are mounted: of two for one place the first.
pub(crate) fn sort_out(all: impl IntoIterator<Item = Claim>) -> Claims {
    let mut claims = Claims::default();
    for claim in all {
        let path = normal(&claim.path);
        match unfit(&path, &claims.mounted) {
            None => claims.mounted.push(Claim { path, ..claim }),
            Some(why) => {
                claims.left_out.push(format!("volume claim `{}` is not mounted at `{}`: {why}", claim.name, claim.path))
            }
        }
    }
    claims
}

fn unfit(path: &str, before: &[Claim]) -> Option<String> {
    if !path.starts_with('/') || path == "/" || path == "/etc" {
        return Some("`ml.azure.com/mountpath` must be an absolute path, and not `/` or `/etc`".to_owned());
    }
    if path.contains(':') || path.split('/').any(|step| step == "..") {
        return Some("a mount path has no `:` and no `..`".to_owned());
    }
    if let Some(own) = pods::OWN.iter().chain(&SYSTEM).find(|own| within(path, own)) {
        return Some(format!("`{own}` is not for others to mount at"));
    }
    let taken = before.iter().find(|claim| claim.path == path)?;
    Some(format!("claim `{}` is mounted there", taken.name))
}

fn within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Without doubled slashes and dots, and without one at the end.
fn normal(path: &str) -> String {
    if !path.starts_with('/') {
        return path.to_owned();
    }
    let steps: Vec<_> = path.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
    format!("/{}", steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_cannot_be_mounted_is_left_out_with_a_reason_and_the_others_stay() {
        let claim = |(name, path): (&str, &str)| Claim { name: name.into(), path: path.into() };
        let all = [
            ("a", "/data"),
            ("b", "/data/"),
            ("c", "/data/sets"),
            ("d", "/peregrine-home/x"),
            ("e", "/"),
            ("f", "relative"),
            ("g", "/a:b"),
            ("h", "/x/../proc"),
            ("i", "/dev/shm"),
            ("j", ""),
            ("k", "/etc/"),
            ("l", "/devices"),
        ];
        let claims = sort_out(all.map(claim));
        let mounted: Vec<_> = claims.mounted.iter().map(|claim| (claim.name.as_str(), claim.path.as_str())).collect();
        assert_eq!(mounted, [("a", "/data"), ("c", "/data/sets"), ("l", "/devices")]);
        assert_eq!(claims.left_out.len(), 9);
        assert_eq!(claims.left_out[0], "volume claim `b` is not mounted at `/data/`: claim `a` is mounted there");
        assert!(claims.left_out[1].contains("`/peregrine-home`"), "{}", claims.left_out[1]);
    }
}
