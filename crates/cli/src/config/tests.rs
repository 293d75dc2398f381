//! Settings from every place, and what is said about wrong ones.

use super::*;
use check::{Raw, check};
use expect_test::{Expect, expect};

fn read(text: &str, variables: &[(&str, &str)], flags: &Flags) -> Result<Config, Vec<String>> {
    let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    let file = Path::new("/h/peregrine.toml");
    let raw = Raw { home: "/h".into(), file, text, variable: &variable, flags };
    check(&raw).map_err(|bad| bad.iter().map(ToString::to_string).collect())
}

fn mistakes(text: &str, expect: Expect) {
    expect.assert_eq(&read(text, &[], &vec![]).unwrap_err().join("\n"));
}

#[test]
fn the_later_source_wins() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\n[defaults]\nworkspace = \"filed\"\n";
    let read = |variables: &[(&str, &str)], flags: &Flags| read(file, variables, flags).unwrap();
    let config = read(&[], &vec![]);
    assert_eq!((config.listen.port(), config.workspace.as_str(), config.listen_chosen), (1, "filed", true));
    let config = read(&[("PEREGRINE_SERVER_LISTEN", "127.0.0.1:2")], &vec![]);
    assert_eq!(config.listen.port(), 2);
    assert_eq!(config.sources["server.listen"].1, Source::Environment("PEREGRINE_SERVER_LISTEN"));
    let flags = vec![("server.listen", "--listen", "127.0.0.1:3".to_owned())];
    assert_eq!(read(&[("PEREGRINE_SERVER_LISTEN", "127.0.0.1:2")], &flags).listen.port(), 3);
}

#[test]
fn nothing_written_is_a_working_configuration() {
    let config = read("", &[], &vec![]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7423");
    assert!(!config.listen_chosen && config.url.is_none() && config.slots == Slots::default());
    assert_eq!(config.scope().path().matches("default").count(), 2);
}

#[test]
fn every_mistake_is_told_with_its_file_and_key() {
    mistakes(
        "[server]\nlistn = \"x\"\nhttp = \"0.0.0.0:80\"\nlisten = \"0.0.0.0:7423\"\nurl = \"http://example.org\"\n\
         [lokal]\ncpus = 1\n[local]\nmemory = \"lots\"\nisolation = \"maybe\"\ngpus = [1]\n",
        expect![[r#"
            /h/peregrine.toml: `local.gpus`: must be one value (write text, a number or a boolean)
            /h/peregrine.toml: `lokal`: is not a section of the settings (did you mean `local`?)
            /h/peregrine.toml: `server.listn`: is not a setting (did you mean `server.listen`?)
            /h/peregrine.toml: `server.url`: `http://example.org` cannot be used: a token must not travel without TLS (write it like `https://ml.example.org:7423`)
            /h/peregrine.toml: `local.isolation`: `maybe` cannot be used: it is not a word known here (write `none` or `required`)
            /h/peregrine.toml: `local.memory`: `lots` cannot be used: it is not an amount (such as `8Gi`)
            /h/peregrine.toml: `server.listen`: `0.0.0.0:7423` is reachable from other machines, which is refused without a certificate of your own (set `server.tls_cert` and `server.tls_key`, or listen on 127.0.0.1)
            /h/peregrine.toml: `server.http`: `0.0.0.0:80` would carry tokens over the network in the clear (use an address on 127.0.0.1)"#]],
    );
}

#[test]
fn an_address_of_a_database_is_shown_without_its_password_whether_right_or_wrong() {
    let config = read("[store]\nurl = \"postgresql://me:hunter2@db/ml\"\n", &[], &vec![]).unwrap();
    assert_eq!(config.sources["store.url"].0, "postgresql://me@db/ml");
    assert!(!format!("{config:?}").contains("hunter2"));
    assert_eq!(config.postgres.unwrap().with_secrets(), "postgresql://me:hunter2@db/ml");
    mistakes(
        "[store]\nurl = \"postgres:me:hunter2@db/ml\"\n",
        expect![[
            r#"/h/peregrine.toml: `store.url`: cannot be used: it does not begin with `postgresql://` (write it like `postgresql://user@host/database`)"#
        ]],
    );
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let shown = read("[server]\nlisten = \n", &[], &vec![]).unwrap_err().join("\n");
    assert!(shown.starts_with("/h/peregrine.toml:2:10: not TOML: "), "{shown}");
}

#[test]
fn instance_types_are_read_with_their_limits() {
    let config = read(
        "[[local.instance_types]]\nname = \"gpu\"\ncpu = 2\nmemory = \"4Gi\"\ngpus = 1\nlimits = true\n\
         [[local.instance_types]]\nname = \"small\"\ncpu = \"500m\"\nmemory = \"1Gi\"\n",
        &[],
        &vec![],
    )
    .unwrap();
    let [gpu, small] = config.instance_types.as_slice() else { panic!("{:?}", config.instance_types) };
    assert_eq!((gpu.requests.gpus, gpu.limits), (1, Some(gpu.requests)));
    assert_eq!((small.requests.cpu_milli, small.limits), (500, None));
    mistakes(
        "[[local.instance_types]]\ncpus = 2\nmemory = 0\n",
        expect![[r#"
            /h/peregrine.toml: `local.instance_types[0].cpus`: is not a key of an instance type (did you mean `cpu`?)
            /h/peregrine.toml: `local.instance_types[0].name`: is missing (name the instance type)
            /h/peregrine.toml: `local.instance_types[0].cpu`: must be an amount of cores above zero (such as `2` or `500m`)
            /h/peregrine.toml: `local.instance_types[0].memory`: must be a size above zero (such as `4Gi`)"#]],
    );
}

#[test]
fn a_value_is_changed_without_disturbing_the_rest() {
    let text = "# mine\n[server] # here\nlisten = \"a\"\n# kept\n[local]\ncpus = 2\n";
    for (section, key, value, expect) in [
        ("server", "listen", "b", "# mine\n[server] # here\nlisten = \"b\"\n# kept\n[local]\ncpus = 2\n"),
        ("server", "http", "c", "# mine\n[server] # here\nhttp = \"c\"\nlisten = \"a\"\n# kept\n[local]\ncpus = 2\n"),
        ("local", "cpus", "", "# mine\n[server] # here\nlisten = \"a\"\n# kept\n[local]\n"),
        (
            "defaults",
            "workspace",
            "007",
            "# mine\n[server] # here\nlisten = \"a\"\n# kept\n[local]\ncpus = 2\n\n[defaults]\nworkspace = \"007\"\n",
        ),
    ] {
        assert_eq!(with_value(text, section, key, value), expect, "{key}");
    }
}

#[test]
fn the_home_folder_is_found_in_order() {
    let home = |flag: Option<&str>, variables: &[(&str, &str)]| {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        home_folder(flag.map(Path::new), &variable).map(|path| path.display().to_string())
    };
    assert_eq!(home(Some("/f"), &[("PEREGRINE_HOME", "/e")]).unwrap(), "/f");
    assert_eq!(home(None, &[("PEREGRINE_HOME", "/e"), ("HOME", "/u")]).unwrap(), "/e");
    if cfg!(target_os = "linux") {
        assert_eq!(home(None, &[("XDG_DATA_HOME", "/x"), ("HOME", "/u")]).unwrap(), "/x/peregrine");
        assert_eq!(home(None, &[("HOME", "/u")]).unwrap(), "/u/.local/share/peregrine");
    }
    assert!(home(None, &[]).is_err());
}
