//! Weeks of schedules on a clock that jumps, over restarts: every run that is owed is made, and none twice.

use super::*;
use crate::{
    app::Settings,
    auth::Tokens,
    http::records::{self, Change},
};
use domain::Role;
use serde_json::json;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicI64, Ordering},
};
use store::{AssetKey, PrincipalRow, Store};

static NOW: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp(NOW.load(Ordering::SeqCst))
}

/// A server's inside without its doors, as a start makes it.
async fn started(home: &Path) -> App {
    let store = Store::open(home).unwrap();
    let settings = Settings {
        version: "0".into(),
        subscription: "s".into(),
        resource_group: "g".into(),
        workspace: "default".into(),
        public_url: None,
        authority: String::new(),
        bundle: None,
        instance_types: Vec::new(),
        isolation_required: false,
        max_retries: 1,
        storage_quota: 0,
        half_life: std::time::Duration::from_secs(86_400),
        idle: HOUR,
        rate_limit: 0,
        private_webhooks: false,
        keep_deleted: None,
        scoring_url: None,
        routers: None,
        node_certificate: HOUR,
        clock,
    };
    let tokens = Tokens::load_or_make(&home.join("keys"), store.keyring(), clock()).unwrap();
    let app = App::new(store, settings, tokens, "https://here".into());
    crate::http::workspaces::ensure_default(&app).await.unwrap();
    app
}

fn body(trigger: Value, missed: &str, command: &str) -> Value {
    json!({"properties": {
        "trigger": trigger, "properties": {"peregrine.missed": missed},
        "action": {"actionType": "CreateJob", "jobDefinition": {
            "jobType": "Command", "command": command, "computeId": "azureml:local", "experimentName": "e",
            "environmentId": "azureml:AzureML-Minimal@latest",
        }},
    }})
}

async fn put(app: &App, name: &str, body: Value) {
    put_by(app, name, "me", body).await;
}

async fn put_by(app: &App, name: &str, by: &str, body: Value) {
    let workspace = app.workspace("default").await.unwrap();
    let change = Change::whole(Kind::Schedule, Schedule::key("default", name), by.into());
    records::write(app, &workspace, change, body).await.map_err(|problem| problem.message).unwrap();
}

/// What a schedule has made: the times, oldest first.
async fn made(app: &App, name: &'static str) -> Vec<Timestamp> {
    let runs = app.store.read(move |tx| tx.schedule_runs("default", name, i64::MAX)).await.unwrap();
    runs.into_iter().rev().filter(|run| run.made.is_some()).map(|run| run.due_at).collect()
}

fn draw(seed: &mut u64, most: i64) -> i64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    i64::try_from(*seed >> 33).unwrap() % most
}

#[tokio::test]
async fn over_weeks_of_restarts_and_absences_every_owed_run_is_made_once() {
    // Two weeks that hold the end of summer time in Berlin.
    let begin = Timestamp::parse_iso("2026-10-17T00:00:07+00:00").unwrap();
    NOW.store(begin.0, Ordering::SeqCst);
    let home = tempfile::tempdir().unwrap();
    let mut app = started(home.path()).await;
    let cron = |expression: &str| {
        json!({"triggerType": "Cron", "expression": expression, "timeZone": "Europe/Berlin",
            "startTime": "2026-10-17T00:00:00"})
    };
    let names = [("all", "30 * * * *"), ("once", "30 2,14 * * *"), ("skip", "* 6-9 * * *")];
    let mut expect: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    let mut calendars = Vec::new();
    for (name, expression) in names {
        put(&app, name, body(cron(expression), name, "true")).await;
        let schedule = app.store.read(move |tx| Schedule::find(tx, "default", name)).await.unwrap().unwrap();
        let Trigger::Time(calendar) = schedule.trigger else { panic!("it is a time") };
        calendars.push((name, calendar));
    }
    let (mut seed, mut adopted) = (11, false);
    while clock().0 < begin.0 + 14 * 86_400_000 {
        let before = clock();
        // Mostly the loop is on time; now and then it is away for up to two days.
        let step =
            if draw(&mut seed, 40) == 0 { draw(&mut seed, 2 * 86_400_000) } else { 1 + draw(&mut seed, 1_800_000) };
        NOW.store(before.0 + step, Ordering::SeqCst);
        if draw(&mut seed, 25) == 0 {
            drop(app);
            app = started(home.path()).await;
            adopted = false;
        }
        for (name, calendar) in &calendars {
            let times = std::iter::successors(calendar.next(before), |at| calendar.next(*at));
            let times: Vec<Timestamp> = times.take_while(|at| *at <= clock()).collect();
            let owed = match *name {
                "all" => times,
                "once" => times.last().copied().into_iter().collect(),
                _ => times.last().copied().filter(|at| clock().0 - at.0 <= 60_000).into_iter().collect(),
            };
            expect.entry(name).or_default().extend(owed);
        }
        // Two rounds at the same moment are as good as one.
        pass(&app, &mut adopted).await.unwrap();
        pass(&app, &mut adopted).await.unwrap();
    }
    for (name, _) in names {
        let found = made(&app, name).await;
        assert_eq!(found, expect[name], "{name}");
        assert!(found.len() > 5, "{name} had something to do");
    }
    assert!(expect["all"].len() > 300);
    let jobs = app.store.read(|tx| tx.has_job("default", "all-20261025t003000z")).await.unwrap();
    assert!(jobs, "02:30 in summer time, and the next of it an hour later in winter time");

    // Events: what a schedule's own job makes does not start it again, and no event is acted on twice.
    let event = json!({"triggerType": "Event", "on": "data", "name": "iris"});
    let mut on_data = body(event, "once", "true");
    on_data["properties"]["action"]["jobDefinition"]["inputs"] =
        json!({"v": {"jobInputType": "literal", "value": "v${{trigger.version}} of ${{trigger.name}}"}});
    put(&app, "on-data", on_data).await;
    let register = async |app: &App, version: &'static str, job: Option<String>| {
        app.store
            .write(move |tx| {
                let key = AssetKey {
                    workspace: "default".into(),
                    kind: "data".into(),
                    name: "iris".into(),
                    version: version.into(),
                };
                tx.insert_asset(&key, &json!({"jobName": job}).to_string(), None, "me", clock())
            })
            .await
            .unwrap();
    };
    register(&app, "1", None).await;
    pass(&app, &mut adopted).await.unwrap();
    let runs = async |app: &App| app.store.read(|tx| tx.schedule_runs("default", "on-data", 10)).await.unwrap();
    let first = runs(&app).await.remove(0);
    let job = first.made.unwrap();
    let row = {
        let job = job.clone();
        app.store.read(move |tx| tx.job("default", &job)).await.unwrap().unwrap()
    };
    let made: Value = serde_json::from_str(&row.body).unwrap();
    assert_eq!(made["inputs"]["v"]["value"], "v1 of iris");
    assert_eq!(made["properties"]["peregrine.schedule"], "on-data");
    register(&app, "2", Some(job)).await;
    drop(app);
    let app = started(home.path()).await;
    pass(&app, &mut adopted).await.unwrap();
    pass(&app, &mut adopted).await.unwrap();
    let runs = runs(&app).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[0].made.is_none() && runs[0].problem.as_deref().unwrap().contains("led to"), "{:?}", runs[0]);
}

#[tokio::test]
async fn a_schedule_whose_maker_lost_their_access_starts_nothing_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let app = started(home.path()).await;
    let someone = |id: &str, role: Role| PrincipalRow {
        id: id.into(),
        name: "mia".into(),
        digest: String::new(),
        created_by: "me".into(),
        created_at: Timestamp(0),
        expires_at: None,
        revoked_at: None,
        roles: [("default".to_owned(), role)].into(),
    };
    let (worker, reader) = (someone("p1", Role::Contributor), someone("p2", Role::Reader));
    let insert = move |tx: &mut Tx<'_>| tx.insert_principal(&worker).and_then(|()| tx.insert_principal(&reader));
    app.store.write(insert).await.unwrap();
    app.tokens.principals.refresh(&app.store).await.unwrap();
    let event = json!({"triggerType": "Event", "on": "data", "name": "seen"});
    put_by(&app, "hers", "mia", body(event.clone(), "once", "true")).await;
    put_by(&app, "ours", "me", body(event, "once", "true")).await;
    let mut adopted = false;
    for (version, mias) in [("1", true), ("2", false)] {
        let key =
            AssetKey { workspace: "default".into(), kind: "data".into(), name: "seen".into(), version: version.into() };
        app.store.write(move |tx| tx.insert_asset(&key, "{}", None, "me", clock())).await.unwrap();
        pass(&app, &mut adopted).await.unwrap();
        for (name, starts) in [("hers", mias), ("ours", true)] {
            let run = app.store.read(move |tx| tx.schedule_runs("default", name, 1)).await.unwrap().remove(0);
            assert_eq!(run.made.is_some(), starts, "{name}: {run:?}");
            assert_eq!(run.problem.is_some_and(|why| why.contains("`mia`, who made it")), !starts);
        }
        app.store.write(|tx| tx.revoke_principal("p1", Timestamp(1))).await.unwrap();
        app.tokens.principals.refresh(&app.store).await.unwrap();
    }
    let audit = app.store.read(|tx| tx.audit(Some("default"), None, 1)).await.unwrap().remove(0);
    assert_eq!((audit.caller.as_str(), audit.status), ("mia", 403));
    assert!(audit.path.contains("hers"), "{audit:?}");
}
