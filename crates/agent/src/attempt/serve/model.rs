//! A replica's model, where scripts look for it.
//!
//! `AZUREML_MODEL_DIR` ends in the model's name and version, and in it lies what was registered under its own name: the
//! folder `model` or the file `model.pkl`. Nothing is copied for that; links lead to the files that staging brought.

use domain::{EnvironmentPlan, Place};
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

/// Where containers see models when nobody says otherwise.
const USUAL_FOLDER: &str = "/var/azureml-app/azureml-models/model/1";

pub(in crate::attempt) struct Model {
    /// What staging brought.
    staged: PathBuf,
    /// The folder that holds it under its own name, on this machine and in a container.
    here: PathBuf,
    inside: String,
    name: String,
}

impl Model {
    /// Makes the folder below `folder`; `inside` is its path in a container.
    pub(in crate::attempt) fn put(
        folder: &Path,
        place: &Place,
        staged: &Path,
        inside: Option<&str>,
    ) -> io::Result<Model> {
        let inside = inside.unwrap_or(USUAL_FOLDER).trim_end_matches('/');
        let parts: Vec<_> =
            Path::new(inside).components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let own: PathBuf = parts[parts.len().saturating_sub(2)..].iter().collect();
        let here = folder.join("azureml-models").join(own);
        let name = name_of(place).unwrap_or_else(|| "model".to_owned());
        fs::create_dir_all(&here)?;
        link(&fs::canonicalize(staged)?, &here.join(&name))?;
        Ok(Model { staged: staged.to_owned(), here, inside: inside.to_owned(), name })
    }

    /// What `AZUREML_MODEL_DIR` says.
    pub(in crate::attempt) fn folder(&self, in_container: bool) -> String {
        if in_container { self.inside.clone() } else { self.here.display().to_string() }
    }

    /// What a container has to see, and where.
    pub(in crate::attempt) fn mount(&self) -> (PathBuf, String) {
        (self.staged.clone(), format!("{}/{}", self.inside, self.name))
    }

    /// The folder with the `MLmodel` file: the model's own or its only child that has one.
    pub(in crate::attempt) fn mlflow_folder(&self) -> Option<PathBuf> {
        let is_model = |folder: &Path| folder.join("MLmodel").is_file();
        if is_model(&self.staged) {
            return Some(self.staged.clone());
        }
        let children = fs::read_dir(&self.staged).ok()?.flatten().map(|entry| entry.path());
        let mut models = children.filter(|child| is_model(child));
        models.next().filter(|_| models.next().is_none())
    }
}

/// Real folders with links to the files in them: scripts walk folders, and a walk does not follow links to other folders.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if !from.symlink_metadata()?.is_dir() {
        return symlink(from, to);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        link(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The last part of where it lies.
fn name_of(place: &Place) -> Option<String> {
    let last = |text: &str| text.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    let name = match place {
        Place::Folder { path } => path.file_name().and_then(|name| name.to_str()).map(str::to_owned),
        Place::Object { url, .. } => last(url),
        Place::Http { url } => last(url.split(['?', '#']).next().unwrap_or(url)),
    };
    name.filter(|name| !name.is_empty() && name != "." && name != "..")
}

/// What an MLflow model says it needs: its conda file, or else its requirements.
pub(in crate::attempt) fn environment(environment: &mut EnvironmentPlan, model: &Path) -> io::Result<()> {
    let read = |name: &str| match fs::read_to_string(model.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    match read("conda.yaml")? {
        Some(conda) => environment.conda = Some(conda),
        None => environment.pip = read("requirements.txt")?.iter().flat_map(|t| t.lines()).map(str::to_owned).collect(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_finds_the_model_under_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let staged = folder.path().join("staged");
        fs::create_dir(&staged).unwrap();
        fs::write(staged.join("w.pkl"), "w").unwrap();
        let place = Place::Folder { path: "/blobs/LocalUpload/12/model/".into() };
        let inside = "/var/azureml-app/azureml-models/iris/3";
        let model = Model::put(folder.path(), &place, &staged, Some(inside)).unwrap();
        let here = model.folder(false);
        assert!(here.ends_with("/azureml-models/iris/3"), "{here}");
        assert_eq!(fs::read_to_string(Path::new(&here).join("model/w.pkl")).unwrap(), "w");
        assert!(!Path::new(&here).join("model").is_symlink(), "it can be walked");
        assert_eq!(model.folder(true), inside);
        assert_eq!(model.mount(), (staged, format!("{inside}/model")));
    }

    #[test]
    fn names_come_from_wherever_the_model_lies() {
        let object = |url: &str| Place::Object { url: url.into(), datastore: "d".into(), options: Default::default() };
        for (place, name) in [
            (Place::Folder { path: "/a/model.pkl".into() }, Some("model.pkl")),
            (object("az://c/x/model/"), Some("model")),
            (Place::Http { url: "https://h/m.bin?sig=1".into() }, Some("m.bin")),
            (Place::Folder { path: "/".into() }, None),
        ] {
            assert_eq!(name_of(&place).as_deref(), name, "{place:?}");
        }
    }
}
