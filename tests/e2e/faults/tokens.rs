//! Who may do what: every route asks for its token, and no role takes another's place.

use crate::harness::Home;
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt};

/// Every route of the server: method, address with its names filled in, and whether it is open.
fn routes(description: &str) -> Vec<(String, String, bool)> {
    let description: Value = serde_json::from_str(description).unwrap();
    let mut all = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let filled: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { "default" } else { part }).collect();
        for (method, route) in methods.as_object().unwrap() {
            let open = route["security"].as_array().unwrap().is_empty();
            all.push((method.to_uppercase(), filled.join("/"), open));
        }
    }
    all
}

#[test]
fn every_route_but_the_open_ones_asks_for_a_token() {
    let home = Home::new();
    let door = home.open_door();
    let (_, description) = door.ask("GET", "/openapi.json", None, "");
    let routes = routes(&description);
    assert!(routes.len() > 30, "{}", routes.len());
    for (method, target, _) in routes.iter().filter(|(.., open)| !open) {
        for token in [None, Some("nonsense"), Some("job.default/x/99999999999999.00")] {
            let (status, body) = door.ask(method, target, token, "{}");
            assert_eq!(status, 401, "{method} {target} {token:?}: {body}");
        }
    }
    let mut open: Vec<&str> = routes.iter().filter(|(.., open)| *open).map(|(_, target, _)| target.as_str()).collect();
    open.sort_unstable();
    // The studio's pages hold nothing of anyone's. The last three check a secret of their own: a link's, a job's, a client's.
    let known = [
        "/default/.well-known/openid-configuration",
        "/default/v2.0/.well-known/openid-configuration",
        "/discovery",
        "/health",
        "/healthz",
        "/metadata/endpoints",
        "/openapi.json",
        "/readyz",
        "/",
        "/studio",
        "/studio/",
        "/studio/default",
        "/admin/v1/studio/session",
        "/msi/token",
        "/default/oauth2/v2.0/token",
    ];
    let mut known = known.to_vec();
    known.sort_unstable();
    assert_eq!(open, known);
    home.is_well();
}

#[test]
fn no_role_takes_the_place_of_another() {
    let home = Home::new();
    let door = home.open_door();
    let (agent, user) = (home.token("agent"), home.token("user"));
    let said = home.stream("echo $AZUREML_RUN_TOKEN", "");
    let job = said.out.trim();
    let (_, description) = door.ask("GET", "/openapi.json", None, "");
    for (method, target, _) in routes(&description).into_iter().filter(|(.., open)| !open) {
        // Tokens of one attempt and of a cluster open these; nobody here has one.
        let of_others = target.starts_with("/agent/v1/attempts/") || target.starts_with("/cluster/v1/");
        let of_agents = target.starts_with("/agent/") && !of_others;
        let denied = |token: &str| matches!(door.ask(&method, &target, Some(token), "{}").0, 401 | 403);
        assert_eq!(denied(&agent), !of_agents, "{method} {target} as an agent");
        assert!(denied(job), "{method} {target} as a job");
        if of_agents || of_others {
            assert!(denied(&user), "{method} {target} as a user");
        }
    }
    home.is_well();
}

#[test]
fn a_jobs_token_reads_its_own_job_and_no_other() {
    let home = Home::new();
    let door = home.open_door();
    home.begin("mine", "echo $AZUREML_RUN_TOKEN", "");
    home.begin("yours", "echo hi", "");
    assert_eq!(home.ended("mine")["status"], "Completed");
    assert_eq!(home.ended("yours")["status"], "Completed");
    let (token, id) = (home.log("mine"), home.job("mine")["id"].as_str().unwrap().to_owned());
    let ask = |method: &str, target: &str| door.ask(method, target, Some(token.trim()), "{}").0;
    assert_eq!(ask("GET", &id), 200);
    assert_eq!(ask("PUT", &id), 403);
    assert_eq!(ask("GET", &id.replace("/jobs/mine", "/jobs/yours")), 403);
    assert_eq!(ask("GET", &id.replace("/jobs/mine", "/jobs/yours/why?x=/workspaces/default/jobs/mine/")), 403);
}

#[test]
fn keys_are_their_owners_alone() {
    let home = Home::new();
    home.is_well();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.home()), 0o700);
    let keys: Vec<_> = fs::read_dir(home.home().join("keys")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(keys.len() >= 6, "{keys:?}");
    for key in keys {
        let whose = if key.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&key), whose, "{}", key.display());
    }
    assert_eq!(mode(&home.home().join("server.json")), 0o600);
}

#[test]
fn a_home_that_others_could_look_into_is_closed() {
    let home = Home::new();
    fs::create_dir(home.home()).unwrap();
    fs::set_permissions(home.home(), fs::Permissions::from_mode(0o755)).unwrap();
    home.is_well();
    for path in ["keys", "peregrine.db", "blobs", "agent", "logs"] {
        let open = fs::metadata(home.home().join(path)).unwrap().permissions().mode() & 0o077;
        let home_open = fs::metadata(home.home()).unwrap().permissions().mode() & 0o077;
        assert!(open == 0 || home_open == 0, "`{path}` can be read by others");
    }
}

#[test]
fn other_machines_are_let_in_only_over_tls_of_ones_own() {
    let home = Home::new();
    for way in [
        &["server", "start", "--listen", "0.0.0.0:0"][..],
        &["server", "start", "--foreground", "--listen", "0.0.0.0:0"],
    ] {
        home.run(way).must(2, &["0.0.0.0:0", "other machines", "server.tls_cert", "127.0.0.1"]);
    }
    home.run(&["server", "start", "--http", "0.0.0.0:0"]).must(2, &["0.0.0.0:0", "in the clear", "127.0.0.1"]);
    home.is_well();
}
