//! What an environment asks for, and the name its build is cached under.
//!
//! Invariant: two requests with the same key may share one folder: the key covers the Python asked for, every
//! requirement however it is spelled and ordered, the conda file, whether CUDA is wanted, the platform and our layout.

use super::{Error, conda};
use domain::EnvironmentPlan;
use ring::digest;

/// Raised when the layout of a built folder changes, so that older folders are left alone.
const FORMAT: &str = "peregrine-environment-1";

/// Packages whose default wheels carry CUDA.
const TORCH: [&str; 3] = ["torch", "torchvision", "torchaudio"];

/// A plan's software, read and ready to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// `name:version` for people; the key where the plan has none.
    pub label: String,
    /// Such as `3.10` or `>=3.8,<3.11`; the host's own when absent.
    pub python: Option<String>,
    /// Lines of a requirements file, as the user wrote them.
    pub pip: Vec<String>,
    /// A conda file whose packages only conda can give.
    pub conda: Option<CondaFile>,
    /// No GPU here: smaller builds are welcome.
    pub cpu_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CondaFile {
    pub text: String,
    /// The packages that are neither Python nor its installers.
    pub packages: Vec<String>,
}

impl Request {
    /// `None` when the plan asks for no software of its own.
    pub(crate) fn of(plan: &EnvironmentPlan, cpu_only: bool) -> Result<Option<Request>, Error> {
        let mut request = Request {
            label: plan.label.clone(),
            python: plan.python.clone(),
            pip: plan.pip.iter().map(|line| line.trim().to_owned()).filter(|line| is_meant(line)).collect(),
            conda: None,
            cpu_only,
        };
        if let Some(text) = plan.conda.as_deref().filter(|text| !text.trim().is_empty()) {
            let file = conda::parse(text)?;
            if file.packages.is_empty() {
                request.python = request.python.or(file.python);
                request.pip.extend(file.pip);
            } else {
                // conda itself installs the Python and the pip lines of its file.
                request.conda = Some(CondaFile { text: text.to_owned(), packages: file.packages });
            }
        }
        if request.python.is_none() && request.pip.is_empty() && request.conda.is_none() && plan.conda.is_none() {
            return Ok(None);
        }
        if request.label.is_empty() {
            request.label = format!("environment {}", &request.key()[..12]);
        }
        Ok(Some(request))
    }

    /// The name of the folder it is built in: a digest in hex.
    pub(crate) fn key(&self) -> String {
        let mut lines: Vec<String> = self.pip.iter().map(|line| normal(line)).collect();
        lines.sort();
        lines.dedup();
        let mut context = digest::Context::new(&digest::SHA256);
        let platform = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        let conda = self.conda.as_ref().map_or("", |file| &file.text);
        let cuda = if self.cpu_only && self.has_torch() { "cpu" } else { "any" };
        for part in [FORMAT, &platform, self.python.as_deref().unwrap_or(""), conda, cuda, &lines.join("\n")] {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
        hex(context.finish().as_ref())
    }

    /// PyTorch is asked for without a word on which build.
    pub(crate) fn has_torch(&self) -> bool {
        let chosen = |line: &String| line.starts_with('-') && line.contains("pytorch");
        let torch =
            |line: &String| TORCH.contains(&name_of(&normal(line))) && !line.contains('+') && !line.contains('@');
        self.pip.iter().any(torch) && !self.pip.iter().any(chosen)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The project a normal line names.
pub(crate) fn name_of(line: &str) -> &str {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(line.len());
    &line[..end]
}

fn is_meant(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

/// One spelling for equal requirements: names folded, spaces and comments dropped. Options and addresses keep theirs.
fn normal(line: &str) -> String {
    let line = line.split(" #").next().unwrap_or(line).trim();
    if line.starts_with('-') || line.contains("://") {
        return line.to_owned();
    }
    let (requirement, marker) = match line.split_once(';') {
        Some((requirement, marker)) => (requirement, format!(";{}", marker.trim())),
        None => (line, String::new()),
    };
    let end =
        requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(requirement.len());
    let name = requirement[..end].to_ascii_lowercase().replace(['_', '.'], "-");
    let rest: String = requirement[end..].split_whitespace().collect();
    format!("{name}{rest}{marker}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(python: Option<&str>, pip: &[&str], conda: Option<&str>, cpu_only: bool) -> Request {
        let plan = EnvironmentPlan {
            python: python.map(str::to_owned),
            pip: pip.iter().map(|line| (*line).to_owned()).collect(),
            conda: conda.map(str::to_owned),
            ..EnvironmentPlan::default()
        };
        Request::of(&plan, cpu_only).unwrap().unwrap()
    }

    #[test]
    fn equal_requirements_share_a_key_however_they_are_spelled() {
        let key = |pip: &[&str]| request(Some("3.10"), pip, None, true).key();
        assert_eq!(
            key(&["Scikit_Learn >= 1.0, < 2", "six"]),
            key(&["six", "# why", "", "scikit-learn>=1.0,<2 # pinned"])
        );
        assert_ne!(key(&["six"]), key(&["six==1.16"]));
        assert_ne!(key(&["six"]), request(Some("3.11"), &["six"], None, true).key());
        assert_eq!(key(&["six"]).len(), 64);
    }

    #[test]
    fn a_gpu_changes_only_the_key_of_what_has_cuda_builds() {
        let key = |line: &str, cpu_only| request(None, &[line], None, cpu_only).key();
        assert_eq!(key("six", true), key("six", false));
        assert_ne!(key("torch==2.8", true), key("torch==2.8", false));
        assert_eq!(key("torch==2.8+cpu", true), key("torch==2.8+cpu", false));
    }

    #[test]
    fn a_plan_without_software_asks_for_nothing() {
        let plan = EnvironmentPlan { pip: vec!["# nothing".to_owned()], ..EnvironmentPlan::default() };
        assert_eq!(Request::of(&plan, true).unwrap(), None);
    }

    #[test]
    fn a_conda_file_of_python_and_pip_needs_no_conda() {
        let text = "name: x\nchannels: [conda-forge]\ndependencies:\n- python=3.9\n- pip\n- pip:\n  - six==1.16.0\n";
        let request = request(None, &[], Some(text), true);
        assert_eq!((request.python.as_deref(), request.conda), (Some("3.9"), None));
        assert_eq!(request.pip, ["six==1.16.0"]);
    }
}
