//! Which Python versions a request accepts.
//!
//! Understands what conda and pip files say: `3.10`, `3.10.*`, `=3.8`, `==3.8.13`, `>=3.8,<3.11`, `~=3.9`, `!=3.9.1`.
//! Invariant: a bare number is a prefix, as conda reads it, so `3.8` takes any 3.8.

/// A version as the interpreter tells it: major, minor, patch.
pub(crate) type Version = [u32; 3];

/// A set of versions; empty terms accept all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    op: Op,
    parts: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Prefix,
    NotPrefix,
    AtLeast,
    Above,
    AtMost,
    Below,
    Compatible,
}

const OPS: [(&str, Op); 9] = [
    ("===", Op::Prefix),
    ("==", Op::Prefix),
    ("!=", Op::NotPrefix),
    (">=", Op::AtLeast),
    ("<=", Op::AtMost),
    ("~=", Op::Compatible),
    (">", Op::Above),
    ("<", Op::Below),
    ("=", Op::Prefix),
];

impl Versions {
    /// `None` for text that is no version request.
    pub(crate) fn parse(text: &str) -> Option<Versions> {
        let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty() && *term != "*");
        terms.map(Term::parse).collect::<Option<Vec<Term>>>().map(Versions)
    }

    pub(crate) fn accepts(&self, version: Version) -> bool {
        self.0.iter().all(|term| term.accepts(version))
    }

    /// The same request without patch numbers: what a machine with another patch release can still serve.
    pub(crate) fn loosened(&self) -> Versions {
        let shorten = |term: &Term| Term { parts: term.parts.iter().take(2).copied().collect(), ..term.clone() };
        Versions(self.0.iter().filter(|term| term.op == Op::Prefix).map(shorten).collect())
    }

    /// The request as uv spells it: `==3.10.*`, `>=3.8,<3.11`.
    pub(crate) fn for_uv(&self) -> String {
        self.0.iter().map(Term::for_uv).collect::<Vec<_>>().join(",")
    }

    /// Whether leaving out patch numbers makes a difference.
    pub(crate) fn is_exact(&self) -> bool {
        self.0.iter().any(|term| term.op == Op::Prefix && term.parts.len() > 2)
    }
}

impl Term {
    fn parse(text: &str) -> Option<Term> {
        let (op, rest) = OPS
            .iter()
            .find_map(|(sign, op)| text.strip_prefix(sign).map(|rest| (*op, rest)))
            .unwrap_or((Op::Prefix, text));
        let digits = rest.trim().trim_end_matches(".*").trim_end_matches('*');
        let parts: Vec<u32> = digits.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (!parts.is_empty() && parts.len() <= 3).then_some(Term { op, parts })
    }

    fn for_uv(&self) -> String {
        let number = self.parts.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        let sign = match self.op {
            Op::Prefix => "==",
            Op::NotPrefix => "!=",
            Op::AtLeast => ">=",
            Op::Above => ">",
            Op::AtMost => "<=",
            Op::Below => "<",
            Op::Compatible => "~=",
        };
        let open = matches!(self.op, Op::Prefix | Op::NotPrefix) && self.parts.len() < 3;
        format!("{sign}{number}{}", if open { ".*" } else { "" })
    }

    fn accepts(&self, version: Version) -> bool {
        let cut = &version[..self.parts.len()];
        let whole = |parts: &[u32]| [0, 1, 2].map(|i| parts.get(i).copied().unwrap_or(0));
        match self.op {
            Op::Prefix => cut == self.parts,
            Op::NotPrefix => cut != self.parts,
            Op::AtLeast => version >= whole(&self.parts),
            Op::Above => version > whole(&self.parts),
            Op::AtMost => cut <= &self.parts[..],
            Op::Below => version < whole(&self.parts),
            Op::Compatible => {
                let fixed = self.parts.len().saturating_sub(1).max(1);
                version >= whole(&self.parts) && version[..fixed] == self.parts[..fixed]
            }
        }
    }
}

/// Reads `3.11.7`, or `3.13.0rc1` as its release.
pub(crate) fn parse_version(text: &str) -> Option<Version> {
    let mut parts = text.trim().split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().ok()
    });
    Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
}

pub(crate) fn humane(version: Version) -> String {
    format!("{}.{}.{}", version[0], version[1], version[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_accept_what_conda_and_pip_mean_by_them() {
        for (request, yes, no) in [
            ("3.10", "3.10.13", "3.1.0"),
            ("3.10.*", "3.10.0", "3.11.0"),
            ("=3.8", "3.8.18", "3.9.0"),
            ("==3.8.13", "3.8.13", "3.8.18"),
            (">=3.8,<3.11", "3.10.13", "3.11.0"),
            (">=3.8, <=3.10", "3.10.13", "3.11.7"),
            ("~=3.9", "3.12.1", "2.7.18"),
            ("3.*", "3.12.1", "2.7.18"),
            (">3.9,!=3.10", "3.11.7", "3.10.1"),
            ("*", "3.6.15", "x"),
        ] {
            let versions = Versions::parse(request).unwrap();
            assert!(versions.accepts(parse_version(yes).unwrap()), "{request} {yes}");
            assert!(parse_version(no).is_none_or(|no| !versions.accepts(no)), "{request} {no}");
        }
    }

    #[test]
    fn uv_is_asked_in_its_own_spelling() {
        for (request, spelled) in [("3.10.*", "==3.10.*"), ("=3.8.5", "==3.8.5"), (">=3.8, <3.11", ">=3.8,<3.11")] {
            assert_eq!(Versions::parse(request).unwrap().for_uv(), spelled);
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for bad in ["three", "3.x", ">=", "3.8.1.2", "3.8=h12_0"] {
            assert_eq!(Versions::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_exact_release_can_be_loosened_to_its_minor() {
        let exact = Versions::parse("==3.8.13").unwrap();
        assert!(exact.is_exact() && exact.loosened().accepts([3, 8, 18]) && !exact.loosened().accepts([3, 9, 0]));
        assert!(!Versions::parse("3.8").unwrap().is_exact());
    }
}
