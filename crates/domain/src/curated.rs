//! Curated environments: the names that files in the field use, and what we install for them.
//!
//! They are data (`curated/environments.json`), so that an operator can replace one. Versions and labels are
//! accepted and make no difference: each name has one definition here.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The software behind a curated name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curated {
    /// Without the prefix `AzureML-`.
    pub name: String,
    /// Such as `3.10`.
    pub python: String,
    /// Lines of a pip requirements file.
    pub pip: Vec<String>,
    /// Packages of which a CPU build is to be taken where there is one and no GPU is used: their ordinary builds
    /// bring gigabytes of CUDA.
    pub cpu_only: Vec<String>,
    pub description: String,
}

/// Every curated environment.
pub fn list() -> &'static [Curated] {
    static LIST: OnceLock<Vec<Curated>> = OnceLock::new();
    LIST.get_or_init(|| {
        serde_json::from_str(include_str!("curated/environments.json")).expect("the shipped list is tested to be valid")
    })
}

/// The curated environment that a reference leads to, in any case and with any version or label:
/// `azureml://registries/azureml/environments/N/...`, `azureml:AzureML-N@latest`, `azureml:N:3` or `N`.
pub fn find(reference: &str) -> Option<&'static Curated> {
    let name = name_in(reference.trim())?.to_ascii_lowercase();
    let name = name.strip_prefix("azureml-").unwrap_or(&name);
    list().iter().find(|curated| is_called(name, &curated.name.to_ascii_lowercase()))
}

/// Whether an image holds nothing that a plain Python would not do for: Azure's own base images.
pub fn base_image_is_plain_python(image: &str) -> bool {
    let image = image.trim().to_ascii_lowercase();
    image.strip_prefix("mcr.microsoft.com/azureml/").is_some_and(|rest| !rest.is_empty())
}

/// The name in a reference, without version and label.
fn name_in(reference: &str) -> Option<&str> {
    if let Some(rest) = strip_prefix(reference, "azureml://") {
        let (registry, rest) = strip_prefix(rest, "registries/")?.split_once('/')?;
        let name = strip_prefix(rest, "environments/")?.split('/').next()?;
        return registry.eq_ignore_ascii_case("azureml").then_some(name);
    }
    let rest = strip_prefix(reference, "azureml:").unwrap_or(reference);
    rest.split([':', '@']).next().filter(|name| !name.is_empty())
}

fn strip_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Older names end in the system they were built on, such as `-ubuntu20.04-py38-cpu`.
fn is_called(name: &str, curated: &str) -> bool {
    match name.strip_prefix(curated) {
        Some("") => true,
        Some(rest) => ["-ubuntu", "-py3", "-cpu", "-gpu"].iter().any(|end| rest.starts_with(end)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_the_same_environment() {
        for reference in [
            "azureml://registries/azureml/environments/sklearn-1.5/versions/33",
            "azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
            "AzureML://registries/AzureML/environments/SKLearn-1.5",
            "azureml:AzureML-sklearn-1.5@latest",
            "azureml:AzureML-sklearn-1.5:7",
            "azureml:AzureML-sklearn-1.5-ubuntu20.04-py38-cpu@latest",
            "azureml:sklearn-1.5@latest",
            "azureml:sklearn-1.5:1",
            "AzureML-sklearn-1.5",
            "sklearn-1.5",
        ] {
            assert_eq!(find(reference).map(|c| c.name.as_str()), Some("sklearn-1.5"), "{reference}");
        }
        assert_eq!(find("AzureML-Tutorial").unwrap().name, "Tutorial");
        assert_eq!(find("azureml:AzureML-AutoML@prod").unwrap().name, "AutoML");
    }

    #[test]
    fn what_is_not_curated_is_not_found() {
        for reference in [
            "",
            "azureml:",
            "azureml://",
            "azureml://registries/other/environments/sklearn-1.5/versions/1",
            "azureml://registries/azureml/models/sklearn-1.5",
            "azureml:ACPT_Nebula@latest",
            "sklearn-1.50",
            "ü",
        ] {
            assert_eq!(find(reference), None, "{reference}");
        }
    }

    #[test]
    fn every_definition_is_complete_and_named_once() {
        let mut names: Vec<_> = list().iter().map(|c| c.name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), list().len());
        for curated in list() {
            assert!(["3.10", "3.11", "3.12"].contains(&curated.python.as_str()), "{}", curated.name);
            assert!(!curated.pip.is_empty() && !curated.description.is_empty(), "{}", curated.name);
            for package in &curated.cpu_only {
                assert!(curated.pip.iter().any(|line| line.starts_with(package.as_str())), "{package}");
            }
        }
    }

    #[test]
    fn azures_base_images_count_as_plain_python() {
        assert!(base_image_is_plain_python("mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04:latest"));
        assert!(base_image_is_plain_python("mcr.microsoft.com/azureml/minimal-py312-inference:latest"));
        assert!(!base_image_is_plain_python("mcr.microsoft.com/aznhc/aznhc-nv"));
        assert!(!base_image_is_plain_python("library/python:3.12"));
    }
}
