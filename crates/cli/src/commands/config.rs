//! `peregrine config …`.

use super::Context;
use crate::{
    args::machine::ConfigVerb,
    config::{self, FILE, SETTINGS, Setting, with_value},
    failure::{Done, Failure},
    output::Column,
};
use serde_json::{Value, json};
use std::{fs, io::Write, process::ExitCode};

const COLUMNS: &[Column] = &[
    Column::new("SETTING", |item| text(item, "setting")).whole(),
    Column::new("VALUE", |item| text(item, "value")),
    Column::new("FROM", |item| text(item, "from")),
];

pub(super) fn run(context: &Context, verb: ConfigVerb) -> Done<ExitCode> {
    match verb {
        ConfigVerb::Show => show(context)?,
        ConfigVerb::Get { key } => get(context, &key)?,
        ConfigVerb::Set { key, value } => set(context, &key, &value)?,
        ConfigVerb::Path => context.output.text(&format!("{}\n", context.config.home.join(FILE).display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context) -> Done {
    let row = |setting: &Setting| {
        let (value, source) = &context.config.sources[setting.key];
        json!({"setting": setting.key, "value": value, "from": source.to_string(), "about": setting.about})
    };
    let mut rows: Vec<Value> = vec![
        json!({"setting": "home", "value": context.config.home, "from": "--home, $PEREGRINE_HOME or the platform",
        "about": "where state and settings are kept"}),
    ];
    rows.extend(SETTINGS.iter().map(row));
    for one in &context.config.instance_types {
        let limits = one.limits.map_or_else(|| "no limits".to_owned(), |limits| format!("at most {}", limits.humane()));
        rows.push(json!({
            "setting": format!("local.instance_types.{}", one.name), "value": format!("{}; {limits}", one.requests.humane()),
            "from": context.config.home.join(FILE), "about": "a named shape of resources",
        }));
    }
    context.output.list(rows, COLUMNS)
}

fn get(context: &Context, key: &str) -> Done {
    let setting = known(key)?;
    context.output.text(&format!("{}\n", context.config.sources[setting.key].0))
}

/// Writes one value, after checking that the file would still be read.
fn set(context: &Context, key: &str, value: &str) -> Done {
    let setting = known(key)?;
    let (section, name) = setting.key.split_once('.').expect("every setting has a section");
    let home = &context.config.home;
    let file = home.join(FILE);
    let old = fs::read_to_string(&file).unwrap_or_default();
    let new = with_value(&old, section, name, value);
    let cannot = |error: std::io::Error| Failure::file(format!("cannot write `{}`", file.display()), &error);
    fs::create_dir_all(home).map_err(cannot)?;
    let mut fresh = tempfile::NamedTempFile::new_in(home).map_err(cannot)?;
    fresh.write_all(new.as_bytes()).and_then(|()| fresh.as_file().sync_all()).map_err(cannot)?;
    config::check_text(home, &new)?;
    fresh.persist(&file).map_err(|error| cannot(error.error))?;
    context.output.note(&format!("set `{key}` in `{}`", file.display()));
    if std::env::var_os(setting.variable).is_some() {
        context
            .output
            .note(&format!("notice: `{}` is set in the environment and wins over the file", setting.variable));
    }
    if section != "defaults" && crate::local::status(home).is_some() {
        context
            .output
            .note("hint: a running server takes it up after `peregrine server stop` and `peregrine server start`");
    }
    Ok(())
}

fn known(key: &str) -> Done<&'static Setting> {
    config::find(key).ok_or_else(|| {
        let failure = Failure::input(format!("`{key}` is not a setting"));
        match config::nearest(key, SETTINGS.iter().map(|setting| setting.key)) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`peregrine config show` lists them"),
        }
    })
}

fn text(item: &Value, key: &str) -> String {
    item[key].as_str().unwrap_or_default().to_owned()
}
