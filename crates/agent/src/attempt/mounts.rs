//! Which folders and files of this machine a container sees, each at its own path.
//!
//! An output that is one file is not there before the command has written it, and may be put there by renaming another:
//! its folder is seen. Invariant: nothing is named twice, and what holds another comes before it; engines refuse the one
//! and hide the other.

use domain::{Plan, PlannedInput};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// All mounts. `inputs` and `outputs` are what the command is told; what is no path, such as a value, is left out.
pub(super) fn of(
    plan: &Plan,
    folders: impl Iterator<Item = PathBuf>,
    inputs: &BTreeMap<String, String>,
    outputs: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let is_data = |name: &String| !matches!(plan.inputs.get(name), Some(PlannedInput::Literal { .. }));
    let inputs = inputs.iter().filter(|(name, _)| is_data(name)).map(|(_, value)| PathBuf::from(value));
    let outputs = outputs.iter().filter_map(|(name, value)| {
        let path = Path::new(value);
        let is_file = plan.outputs.get(name).is_some_and(|output| output.file);
        if is_file { path.parent().map(Path::to_owned) } else { Some(path.to_owned()) }
    });
    let seen: BTreeSet<PathBuf> = folders.chain(inputs).chain(outputs).filter(|path| path.is_absolute()).collect();
    // Paths are compared part by part, so that a folder sorts before all that is in it.
    seen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Place, PlannedOutput, assignment::OutputMode};

    #[test]
    fn the_folder_of_a_file_is_seen_and_nothing_twice() {
        let output =
            |file| PlannedOutput { place: Place::default(), mode: OutputMode::RwMount, uri: String::new(), file };
        let plan = Plan {
            inputs: [("level".to_owned(), PlannedInput::Literal { value: "/etc".into() })].into(),
            outputs: [("a", true), ("b", true), ("c", false), ("far", true)]
                .map(|(name, file)| (name.to_owned(), output(file)))
                .into(),
            ..Plan::default()
        };
        let texts = |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let inputs = texts(&[("x", "/data/x"), ("y", "/data/x"), ("level", "/etc")]);
        let outputs = texts(&[("a", "/d/job/a"), ("b", "/d/job/b"), ("c", "/d/job/c"), ("far", "azureml://d/far")]);
        let found = of(&plan, ["/work".into()].into_iter(), &inputs, &outputs);
        let shown: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(shown, ["/d/job", "/d/job/c", "/data/x", "/work"]);
    }
}
