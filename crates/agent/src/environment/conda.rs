//! Reading conda files: the part of `environment.yml` that decides how an environment is built.
//!
//! Invariant: Python, pip, setuptools and wheel never need conda; every other package in `dependencies` does.

use super::Error;
use domain::spec::yaml::{self, Node, Raw};

/// What a conda file asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Conda {
    pub python: Option<String>,
    pub pip: Vec<String>,
    /// Packages that only conda can install, as written.
    pub packages: Vec<String>,
}

/// Reads the text of a conda file.
pub(crate) fn parse(text: &str) -> Result<Conda, Error> {
    let bad = |reason: String| Error::BadConda { reason };
    let root = yaml::parse("conda_file", text)
        .map_err(|mistakes| bad(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    if !matches!(root.value, Raw::Map(_)) {
        return Err(bad("it is not a map with `dependencies`".to_owned()));
    }
    let mut conda = Conda::default();
    for item in items(root.get("dependencies")).map_err(|reason| bad(format!("`dependencies` {reason}")))? {
        match (&item.value, item.scalar_text()) {
            (_, Some(package)) => take_package(&mut conda, package.trim()),
            (Raw::Map(_), _) => {
                for line in items(item.get("pip")).map_err(|reason| bad(format!("`pip` {reason}")))? {
                    conda.pip.extend(line.scalar_text().map(|line| line.trim().to_owned()));
                }
            }
            _ => {}
        }
    }
    Ok(conda)
}

fn items(node: Option<&Node>) -> Result<&[Node], String> {
    match node.map(|node| &node.value) {
        None | Some(Raw::Null) => Ok(&[]),
        Some(Raw::List(items)) => Ok(items),
        Some(_) => Err("is not a list".to_owned()),
    }
}

/// `channel::name=version=build`, `name>=1,<2`, `name 1.2`.
fn take_package(conda: &mut Conda, package: &str) {
    let spec = package.rsplit("::").next().unwrap_or(package);
    let end = spec.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(spec.len());
    let (name, version) = (spec[..end].to_ascii_lowercase(), without_build(spec[end..].trim()));
    match name.as_str() {
        "python" => conda.python = (!version.is_empty()).then_some(version),
        "pip" => {}
        "setuptools" | "wheel" => conda.pip.push(format!("{name}{}", pip_version(&version))),
        _ => conda.packages.push(package.to_owned()),
    }
}

/// A single version may carry the name of one build after a second `=`: `=3.8=h12_0`.
fn without_build(version: &str) -> String {
    let sign_end = version.find(|c: char| c.is_ascii_digit()).unwrap_or(version.len());
    let (sign, rest) = version.split_at(sign_end);
    let number = if rest.contains(',') { rest } else { rest.split('=').next().unwrap_or(rest) };
    let sign = if sign.trim() == "=" { "" } else { sign.trim() };
    format!("{sign}{number}")
}

/// conda's `59.5` takes any release that starts so.
fn pip_version(version: &str) -> String {
    match version.chars().next() {
        None => String::new(),
        Some(first) if first.is_ascii_digit() => format!("=={}.*", version.trim_end_matches(".*")),
        Some(_) => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_sorted_by_who_can_install_them() {
        let text = "name: m\nchannels:\n- conda-forge\ndependencies:\n- conda-forge::python=3.8.5=h1\n- pip=20.2\n\
                    - setuptools=59.5\n- numpy>=1.2\n- cudatoolkit\n- pip:\n  - six\n  - azureml-mlflow==1.4\n";
        let conda = parse(text).unwrap();
        assert_eq!(conda.python.as_deref(), Some("3.8.5"));
        assert_eq!(conda.pip, ["setuptools==59.5.*", "six", "azureml-mlflow==1.4"]);
        assert_eq!(conda.packages, ["numpy>=1.2", "cudatoolkit"]);
    }

    #[test]
    fn python_requests_keep_their_meaning() {
        for (written, meant) in [
            ("python=3.10.*", Some("3.10.*")),
            ("python>=3.8,<3.11", Some(">=3.8,<3.11")),
            ("python==3.8.13", Some("==3.8.13")),
            ("python 3.9", Some("3.9")),
            ("python", None),
        ] {
            let conda = parse(&format!("dependencies:\n- {written}\n")).unwrap();
            assert_eq!(conda.python.as_deref(), meant, "{written}");
        }
    }

    #[test]
    fn a_file_that_is_no_conda_file_is_refused_with_a_reason() {
        for (text, reason) in [("- a\n", "map"), ("dependencies: six\n", "`dependencies`"), ("a: [\n", "conda_file")] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text} {message}");
        }
    }
}
