//! `gen docs` and `gen deploy`: the parts of the documentation and of deployments that are written in code, as files.
//!
//! Invariant: the same binary writes the same bytes, so that CI can tell whether the checked-in files are current.

use crate::{
    args::Cli,
    config::SETTINGS,
    failure::{Done, Failure},
};
use clap::{Arg, Command, CommandFactory};
use domain::spec::shape::{Noun, json_schema, reference};
use std::{fs, path::Path};

/// Writes every generated file under `to`.
pub(crate) fn write(to: &Path) -> Done {
    put(&to.join("cli.md"), &commands())?;
    put(&to.join("settings.md"), &settings())?;
    #[cfg(feature = "kubernetes")]
    put(&to.join("extension-settings.md"), &extension_settings())?;
    for noun in Noun::ALL {
        put(&to.join(format!("{noun}-file.md")), &reference(noun))?;
        put(&to.join(format!("schemas/{noun}.json")), &pretty(&json_schema(noun)))?;
    }
    put(&to.join("openapi.json"), &pretty(&api::openapi::openapi(env!("CARGO_PKG_VERSION"))))
}

/// Writes the Helm chart and the definitions of resources under `to`.
#[cfg(feature = "kubernetes")]
pub(crate) fn deploy(to: &Path) -> Done {
    use kubernetes::manifests::chart;
    for (path, text) in chart::files(env!("CARGO_PKG_VERSION")) {
        put(&to.join("chart/peregrine-extension").join(path), &text)?;
    }
    put(&to.join("crds/instancetypes.yaml"), &chart::definition_file())
}

#[cfg(feature = "kubernetes")]
fn extension_settings() -> String {
    use kubernetes::settings::keys::{Effect, KEYS};
    let mut out = String::from(
        "# Settings of the extension\n\nGiven with `peregrine extension install --config key=value`, or as `settings` of the Helm chart. \
         Secrets are given with `--config-protected key=FILE`.\n\n| Setting | Default | |\n|---|---|---|\n",
    );
    for key in KEYS {
        let aliases: String = key.aliases.iter().map(|alias| format!(", also `{alias}`")).collect();
        let here = match key.effect {
            Effect::Used => String::new(),
            Effect::Instead(text) => format!(" Accepted: {text}."),
        };
        let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
        out.push_str(&format!("| `{}`{aliases} | {default} | {}.{here} |\n", key.name, key.about));
    }
    out
}

fn put(path: &Path, text: &str) -> Done {
    let cannot = |error: std::io::Error| Failure::file(format!("cannot write `{}`", path.display()), &error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(cannot)?;
    }
    fs::write(path, text).map_err(cannot)
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).expect("a JSON value has text keys") + "\n"
}

fn settings() -> String {
    let mut out = String::from(
        "# Settings\n\nRead from built-in defaults, then `peregrine.toml` in the home folder, then the environment, then flags; later wins.\n\n\
         | Setting | Variable | Default | |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let default = if setting.default.is_empty() { String::new() } else { format!("`{}`", setting.default) };
        out.push_str(&format!("| `{}` | `{}` | {default} | {} |\n", setting.key, setting.variable, setting.about));
    }
    out.push_str(
        "\nNamed shapes of resources are lists of `[[local.instance_types]]` with `name`, `cpu`, `memory`, `gpus` and `limits` \
         (`true` for the same as asked, or amounts of its own).\n",
    );
    out
}

fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = String::from("# Commands\n\nEvery command also takes the global options at the end of this page.\n");
    for noun in root.get_subcommands().filter(|command| is_shown(command)) {
        section(noun, "peregrine", &mut out);
    }
    out.push_str("\n## Global options\n\n");
    options(root.get_arguments().filter(|arg| arg.is_global_set()), &mut out);
    out.push_str("\nExit codes: 0 done, 1 the job failed, 2 your input, 3 not allowed, 4 cannot reach the server, 5 our fault.\n");
    out
}

fn section(command: &Command, path: &str, out: &mut String) {
    let path = format!("{path} {}", command.get_name());
    let verbs: Vec<&Command> = command.get_subcommands().filter(|inner| is_shown(inner)).collect();
    let level = if path.split(' ').count() > 2 { "###" } else { "##" };
    out.push_str(&format!(
        "\n{level} `{path}`\n\n{}.\n",
        command.get_about().map(ToString::to_string).unwrap_or_default()
    ));
    if verbs.is_empty() {
        let own: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help")
            .collect();
        if !own.is_empty() {
            out.push('\n');
        }
        options(own.into_iter(), out);
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        out.push_str(&format!("\n```sh\n{}\n```\n", examples.join("\n")));
    }
    for verb in verbs {
        section(verb, &path, out);
    }
}

fn options<'a>(args: impl Iterator<Item = &'a Arg>, out: &mut String) {
    for arg in args {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let short = arg.get_short().map(|short| format!("-{short}"));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let value = match arg.get_action().takes_values() {
            true => format!(
                " {}",
                arg.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str())
            ),
            false => String::new(),
        };
        let name = if names.is_empty() {
            arg.get_id().to_string().to_uppercase()
        } else {
            format!("{}{value}", names.join(", "))
        };
        let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let needed = if arg.is_required_set() { " Required." } else { "" };
        out.push_str(&format!("- `{name}`: {about}.{needed}\n"));
    }
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_written_and_twice_the_same() {
        let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        write(first.path()).unwrap();
        write(second.path()).unwrap();
        for name in ["cli.md", "settings.md", "job-file.md", "environment-file.md", "openapi.json", "schemas/job.json"]
        {
            let text = fs::read_to_string(first.path().join(name)).unwrap();
            assert!(text.len() > 300, "{name}");
            assert_eq!(text, fs::read_to_string(second.path().join(name)).unwrap(), "{name}");
        }
        let commands = fs::read_to_string(first.path().join("cli.md")).unwrap();
        assert!(commands.contains("### `peregrine job create`") && !commands.contains("`peregrine agent"));
    }
}
