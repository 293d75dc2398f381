//! Settings of the extension, gathered from flags and files.

use crate::{
    args::extension::ConfigArgs,
    failure::{Done, Failure},
    spec_file,
};
use domain::spec::Mistake;
use kubernetes::settings::{self, Checked, Raw};

/// What was typed, still unchecked.
pub(super) struct Typed {
    pub(super) plain: Raw,
    pub(super) protected: Raw,
}

/// Reads flags and files; what `--config` says wins over the file.
pub(super) fn typed(args: &ConfigArgs) -> Done<Typed> {
    let mut mistakes = Vec::new();
    let mut plain = match &args.config_file {
        Some(path) => settings::from_json(&spec_file::raw(path)?).map_err(|mistake| refuse(&[mistake]))?,
        None => Raw::new(),
    };
    let mut keep = |text: &String| settings::pair(text).map_err(|mistake| mistakes.push(mistake)).ok();
    plain.extend(args.config.iter().filter_map(&mut keep));
    let files: Vec<(String, String)> = args.config_protected.iter().filter_map(&mut keep).collect();
    if !mistakes.is_empty() {
        return Err(refuse(&mistakes));
    }
    let read = |(key, path): (String, String)| Ok((key, spec_file::read_text(path.as_ref())?));
    Ok(Typed { plain, protected: files.into_iter().map(read).collect::<Done<_>>()? })
}

/// Checks everything at once.
pub(super) fn check(typed: &Typed) -> Done<Checked> {
    settings::check(&typed.plain, &typed.protected).map_err(|mistakes| refuse(&mistakes))
}

fn refuse(mistakes: &[Mistake]) -> Failure {
    spec_file::refuse("these settings cannot be used", mistakes).hint("`peregrine extension settings` lists them all")
}
