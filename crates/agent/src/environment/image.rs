//! An environment that is an image: pulled, built from a context, or extended with packages.
//!
//! Invariant: an image made here is tagged by the digest of all that went into it, so it is built once per engine.

use super::{Environments, Error, Log, Ready, request::Request};
use crate::container::{self, Engine, Image};
use domain::EnvironmentPlan;
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Where packages go inside an extended image.
const PREFIX: &str = "/opt/peregrine";

impl Environments {
    pub(crate) async fn in_container(
        &self,
        engine: Engine,
        plan: &EnvironmentPlan,
        context: Option<&Path>,
        log: &dyn Log,
    ) -> Result<Ready, Error> {
        let failed = |source| Error::Image { label: plan.label.clone(), source: Box::new(source) };
        let base = match (&plan.image, &plan.build, context) {
            (_, Some((_, dockerfile)), Some(context)) => container::build(&engine, context, dockerfile, log).await,
            (Some(image), ..) => container::pull(&engine, image, log).await,
            _ => return Err(Error::NoImage { label: plan.label.clone() }),
        };
        let mut image = base.map_err(failed)?;
        // CUDA belongs to the image, so packages are taken as they come.
        if let Some(request) = Request::of(plan, false)? {
            image = self.extend(&image, &request, log).await?;
        }
        Ok(Ready { image: Some(image), isolation: "container", ..Ready::default() })
    }

    async fn extend(&self, base: &Image, request: &Request, log: &dyn Log) -> Result<Image, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let context = self.root().join(format!("image-{}-{number}", std::process::id()));
        let disk = |source| Error::Disk { path: context.clone(), source };
        fs::create_dir_all(&context).map_err(disk)?;
        fs::write(context.join("requirements.txt"), request.pip.join("\n") + "\n").map_err(disk)?;
        fs::write(context.join("conda.yml"), request.conda.as_ref().map_or("", |file| &file.text)).map_err(disk)?;
        fs::write(context.join("Dockerfile"), dockerfile(&base.reference, request)).map_err(disk)?;
        let built = container::build(&base.engine, &context, "Dockerfile", log).await;
        let _left_for_next_time = fs::remove_dir_all(&context);
        built.map_err(|source| Error::Image { label: request.label.clone(), source: Box::new(source) })
    }
}

/// The base image with the packages on top. conda is used where the file needs it or the image brings it.
fn dockerfile(base: &str, request: &Request) -> String {
    let python = request.python.as_deref().filter(|asked| asked.starts_with(|c: char| c.is_ascii_digit()));
    let python = python.map_or(String::new(), |version| format!("={}", version.trim_end_matches(".*")));
    let make = match request.conda {
        Some(_) => format!("conda env create --prefix {PREFIX} --file /tmp/peregrine/conda.yml"),
        None => format!(
            "if command -v conda >/dev/null; then conda create --yes --prefix {PREFIX} python{python} pip; \
             else python3 -m venv {PREFIX}; fi"
        ),
    };
    format!(
        "FROM {base}\nCOPY . /tmp/peregrine/\nRUN {make}\n\
         RUN {PREFIX}/bin/python -m pip install --no-cache-dir -r /tmp/peregrine/requirements.txt\n\
         ENV PATH={PREFIX}/bin:$PATH\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_go_on_top_of_the_image() {
        let plan =
            EnvironmentPlan { pip: vec!["six".into()], python: Some("3.10".into()), ..EnvironmentPlan::default() };
        let text = dockerfile("base:1", &Request::of(&plan, false).unwrap().unwrap());
        assert!(text.starts_with("FROM base:1\n") && text.contains("python=3.10 pip;"), "{text}");
        assert!(text.ends_with("ENV PATH=/opt/peregrine/bin:$PATH\n"), "{text}");
    }
}
