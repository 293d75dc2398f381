//! Custom containers in a real podman, taken from the tool cache. Skipped aloud where it cannot be had.

use super::site::{Site, command};
use crate::pod::house::{skipped, wait_for};
use domain::{Outcome, Place, Plan, PlannedInput, Probe, assignment::InputMode};
use std::{fs, path::PathBuf, process::Command};

const IMAGE: &str = "localhost/peregrine-serve-test:1";
const MODELS: &str = "/var/azureml-app/azureml-models/m/1";

/// The variables under which podman works, with an image in its store that starts a server by itself.
fn podman() -> Option<Vec<(String, String)>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/podman.sh");
    let folder = PathBuf::from(std::env::var_os("HOME")?).join(".cache/peregrine/tools/podman-bookworm-1");
    let set_up = Command::new("sh").arg(script).arg(&folder).output().ok().filter(|done| done.status.success())?;
    let text = String::from_utf8_lossy(&set_up.stdout).into_owned();
    let variables: Vec<(String, String)> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let run = |args: &[&str]| Command::new("podman").args(args).envs(variables.clone()).output();
    let works = |args: &[&str]| run(args).is_ok_and(|done| done.status.success());
    let tar = folder.join("image.tar").display().to_string();
    let start = "CMD [\"/bin/busybox\", \"httpd\", \"-f\", \"-h\", \"/\", \"-p\", \"8000\"]";
    let there = works(&["image", "exists", IMAGE]) || works(&["import", "--change", start, &tar, IMAGE]);
    let reached = there && works(&["run", "--rm", "--publish=127.0.0.1::8000", IMAGE, "/bin/echo", "ok"]);
    reached.then_some(variables)
}

#[test]
fn containers_with_one_port_live_beside_each_other_and_see_the_model_where_it_was_promised() {
    let Some(variables) = podman() else { return skipped("custom containers (no podman that can publish ports)") };
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let (Some(site), Some(other)) = (Site::new(), Site::new()) else { return };
    let model = site.path().join("registered/model");
    fs::create_dir_all(&model).unwrap();
    fs::write(model.join("w.txt"), "heavy").unwrap();
    let place = Place::Folder { path: model };
    let input = PlannedInput::Data { place, mode: InputMode::RoMount, uri: "azureml:m:1".into(), file: false };
    let mut plan = Plan { inputs: [("model".into(), input)].into(), ..command("") };
    plan.environment.image = Some(IMAGE.into());
    let serving = plan.serve.as_mut().unwrap();
    serving.port = Some(8000);
    serving.model_mount = Some(MODELS.into());
    serving.readiness = Probe { path: Some("/etc/marker".into()), ..serving.readiness.clone() };
    let houses = [site.house(plan.clone(), &variables), other.house(plan, &variables)];
    for house in &houses {
        house.ready();
        let (status, body) = house.get(&format!("{MODELS}/model/w.txt"));
        assert_eq!((status, body.as_str()), (200, "heavy"));
    }
    assert_ne!(houses[0].ready(), houses[1].ready());
    let containers = || {
        let filter = format!("ancestor={IMAGE}");
        let listed =
            Command::new("podman").args(["ps", "-q", "--filter", &filter]).envs(variables.clone()).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().count()
    };
    assert_eq!(containers(), 2);
    for house in &houses {
        house.server.stop(0);
        assert!(matches!(house.outcome(), Outcome::Canceled { .. }));
    }
    wait_for("the containers to be gone", || containers() == 0);
}
