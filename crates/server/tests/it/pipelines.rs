//! Pipelines: accepted as one flat graph of steps, or refused with every mistake and its place.

use crate::Server;
use serde_json::{Value, json};

const ENVIRONMENT: &str = "azureml:AzureML-Minimal@latest";

async fn component(server: &Server, name: &str, spec: Value) -> String {
    let mut whole = json!({"name": name, "version": "1", "type": "command", "environment": ENVIRONMENT});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let body = json!({"properties": {"componentSpec": whole}});
    let answer = server.put(&format!("components/{name}/versions/1"), body).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text());
    format!("azureml:{name}:1")
}

/// `make` writes a folder, `use` reads one.
async fn with_components() -> Server {
    let server = Server::start().await;
    let made = json!({"command": "echo ${{inputs.n}} > ${{outputs.out}}/x", "inputs": {"n": {"type": "integer", "default": "1", "max": "9"}},
        "outputs": {"out": {"type": "uri_folder"}, "more": {"type": "boolean"}, "next": {"type": "integer"}}});
    component(&server, "make", made).await;
    let used = json!({"command": "ls ${{inputs.data}} $[[--note ${{inputs.note}}]]",
        "inputs": {"data": {"type": "uri_folder"}, "note": {"type": "string", "optional": true}}, "outputs": {"seen": {"type": "uri_file"}}});
    component(&server, "use", used).await;
    let nested = json!({"type": "pipeline", "inputs": {"count": {"type": "integer"}}, "outputs": {"result": {"type": "uri_folder"}},
        "jobs": {"inner": {"type": "command", "componentId": "azureml:make:1", "inputs": {"n": "${{parent.inputs.count}}"},
            "outputs": {"out": {"value": "${{parent.outputs.result}}", "type": "literal"}}}}});
    component(&server, "nested", nested).await;
    server
}

fn node(component: &str, inputs: Value) -> Value {
    json!({"type": if component == "nested" { "pipeline" } else { "command" }, "componentId": format!("azureml:{component}:1"), "inputs": inputs})
}

fn pipeline(jobs: Value) -> Value {
    json!({"properties": {"jobType": "Pipeline", "experimentName": "tests", "jobs": jobs,
        "inputs": {"n": {"jobInputType": "literal", "value": "3"}},
        "settings": {"default_compute": "azureml:local"}}})
}

fn from(step: &str, output: &str) -> Value {
    json!({"job_input_type": "literal", "value": format!("${{{{parent.jobs.{step}.outputs.{output}}}}}")})
}

/// Steps of an accepted pipeline as `name<waits`.
async fn steps(server: &Server, name: &str, jobs: Value) -> Vec<String> {
    server.put(&format!("jobs/{name}"), pipeline(jobs)).await.expect(201);
    let graph = server.get(&format!("jobs/{name}/graph")).await.expect(200);
    let shown = |step: &Value| {
        let after: Vec<&str> = step["after"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        format!("{}<{}", step["name"].as_str().unwrap(), after.join(","))
    };
    graph["steps"].as_array().unwrap().iter().map(shown).collect()
}

async fn told(server: &Server, jobs: Value) -> String {
    let answer = server.put("jobs/bad", pipeline(jobs)).await;
    answer.refused(400);
    answer.text()
}

#[tokio::test]
async fn a_pipeline_is_one_graph_however_deep_its_components_stand() {
    let server = with_components().await;
    let jobs = json!({
        "last": node("use", json!({"data": from("sub", "result")})),
        "sub": node("nested", json!({"count": "${{parent.inputs.n}}"})),
    });
    assert_eq!(steps(&server, "p", jobs).await, ["sub.inner<", "last<sub.inner"]);
    let shown = server.get("jobs/p").await.expect(200);
    assert_eq!(
        (&shown["properties"]["status"], &shown["properties"]["peregrine"]["phase"]),
        (&json!("Queued"), &json!("queued"))
    );
    assert_eq!(server.get("jobs").await.expect(200)["value"].as_array().unwrap().len(), 1);
    for component in ["use", "nested", "make"] {
        let uses = server.get(&format!("components/{component}/versions/1/uses")).await.expect(200);
        assert_eq!(uses["jobs"][0]["name"], "p", "{component}: {uses}");
    }
    server.post("jobs/p/cancel", json!({})).await.expect(200);
    assert_eq!(server.get("jobs/p").await.expect(200)["properties"]["status"], "Canceled");
}

#[tokio::test]
async fn branches_and_loops_are_written_out() {
    let server = with_components().await;
    let jobs = json!({
        "ask": node("make", json!({})),
        "branch": {"type": "if_else", "condition": "${{parent.jobs.ask.outputs.more}}", "true_block": "${{parent.jobs.yes}}"},
        "yes": node("make", json!({})),
    });
    assert_eq!(steps(&server, "branch", jobs).await, ["ask<", "yes<ask"]);
    let jobs = json!({
        "turn": node("make", json!({})),
        "again": {"type": "do_while", "body": "${{parent.jobs.turn}}", "condition": "${{parent.jobs.turn.outputs.more}}",
            "mapping": {"${{parent.jobs.turn.outputs.next}}": ["n"]}, "limits": {"max_iteration_count": 3}},
        "after": node("use", json!({"data": from("turn", "out")})),
    });
    let looped = steps(&server, "loop", jobs).await;
    let graph = server.store.read(|tx| {
        let seq = tx.job("default", "loop")?.unwrap().job.seq;
        tx.conductor::<domain::pipeline::Graph>(seq)
    });
    let graph = graph.await.unwrap().unwrap();
    assert_eq!(graph.steps[1].bound["n"].output, "next", "what a turn made goes into the next");
    assert_eq!(looped, ["turn.0<", "turn.1<turn.0", "turn.2<turn.1", "after<turn.0,turn.1,turn.2"]);
    let jobs = json!({
        "each": node("make", json!({})),
        "all": {"type": "parallel_for", "body": "${{parent.jobs.each}}", "items": "[{\"n\": 1}, {\"n\": 2}]", "max_concurrency": 1},
        "after": node("use", json!({"data": from("all", "out")})),
    });
    assert_eq!(steps(&server, "each", jobs).await, ["each.0<", "each.1<", "after<each.0,each.1"]);
}

async fn graph_of(server: &Server, name: &'static str) -> domain::pipeline::Graph {
    let graph = server.store.read(move |tx| {
        let seq = tx.job("default", name)?.unwrap().job.seq;
        tx.conductor::<domain::pipeline::Graph>(seq)
    });
    graph.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_branch_around_a_loop_or_another_branch_holds_for_all_that_stands_in_it() {
    let server = with_components().await;
    let asked = "${{parent.jobs.ask.outputs.more}}";
    let loops = [
        (
            "while",
            json!({"type": "do_while", "body": "${{parent.jobs.turn}}", "condition": "${{parent.jobs.turn.outputs.more}}",
            "limits": {"max_iteration_count": 2}}),
        ),
        (
            "known",
            json!({"type": "parallel_for", "body": "${{parent.jobs.turn}}", "items": "[{\"n\": 1}, {\"n\": 2}]"}),
        ),
        (
            "made",
            json!({"type": "parallel_for", "body": "${{parent.jobs.turn}}", "items": "${{parent.jobs.list.outputs.next}}"}),
        ),
        (
            "inner",
            json!({"type": "if_else", "condition": "${{parent.jobs.list.outputs.more}}", "false_block": "${{parent.jobs.turn}}"}),
        ),
    ];
    for (kind, control) in loops {
        for block in ["${{parent.jobs.control}}", "${{parent.jobs.turn}}"] {
            if kind == "inner" && block.contains("turn") {
                continue;
            }
            // The loop stands before the step that its branch asks.
            let jobs = json!({
                "control": control, "turn": node("make", json!({})),
                "branch": {"type": "if_else", "condition": asked, "true_block": [block]},
                "ask": node("make", json!({})), "list": node("make", json!({})),
            });
            let name = match (kind, block.contains("turn")) {
                ("while", true) => "while-t",
                ("while", false) => "while-c",
                ("known", true) => "known-t",
                ("known", false) => "known-c",
                ("made", true) => "made-t",
                ("made", false) => "made-c",
                _ => "inner-c",
            };
            steps(&server, name, jobs).await;
            let graph = graph_of(&server, name).await;
            let ask = graph.steps.iter().position(|step| step.name == "ask").unwrap();
            let tied: Vec<_> =
                graph.steps.iter().filter(|step| !matches!(step.name.as_str(), "ask" | "list")).collect();
            assert!(!tied.is_empty(), "{name}");
            for step in tied {
                let waits = |when: &domain::pipeline::Condition| {
                    when.source().is_some_and(|source| source.steps == [ask] && source.output == "more")
                };
                assert!(step.when.iter().any(waits), "{name}: `{}` runs whatever the branch says", step.name);
            }
        }
    }
    assert_eq!(graph_of(&server, "while-c").await.limited[0].name, "control");
}

#[tokio::test]
async fn a_steps_own_priority_and_services_are_its_jobs() {
    let server = with_components().await;
    let mut own = node("make", json!({}));
    own["queue_settings"] = json!({"priority": "High"});
    own["services"] = json!({"my_lab": {"job_service_type": "JupyterLab"}});
    steps(&server, "own", json!({"a": own, "b": node("make", json!({}))})).await;
    let graph = graph_of(&server, "own").await;
    assert_eq!(graph.steps.iter().map(|step| step.job.priority).collect::<Vec<_>>(), [Some(3), None]);
    assert_eq!(graph.steps[0].job.body["services"]["my_lab"]["jobServiceType"], "JupyterLab");
}

#[tokio::test]
async fn a_step_is_kept_from_reuse_by_itself_its_component_or_its_pipeline() {
    let server = with_components().await;
    component(&server, "dice", json!({"command": "echo $RANDOM", "is_deterministic": false})).await;
    let mut off = node("make", json!({}));
    off["properties"] = json!({"peregrine.reuse": "false"});
    let jobs = json!({"usual": node("make", json!({})), "off": off, "dice": node("dice", json!({}))});
    steps(&server, "usual", jobs).await;
    let reused = |graph: &domain::pipeline::Graph| graph.steps.iter().map(|step| step.job.reuse).collect::<Vec<_>>();
    assert_eq!(reused(&graph_of(&server, "usual").await), [true, false, false]);
    let mut body = pipeline(json!({"usual": node("make", json!({}))}));
    body["properties"]["settings"]["force_rerun"] = json!(true);
    server.put("jobs/forced", body).await.expect(201);
    assert_eq!(reused(&graph_of(&server, "forced").await), [false]);
}

#[tokio::test]
async fn an_output_of_the_pipeline_has_one_maker() {
    let server = with_components().await;
    let mut made = node("make", json!({}));
    made["outputs"] = json!({"out": {"value": "${{parent.outputs.result}}", "type": "literal"}});
    let mut body = pipeline(json!({"a": made.clone(), "b": made}));
    body["properties"]["outputs"] = json!({"result": {"jobOutputType": "uri_folder"}});
    let answer = server.put("jobs/bad", body).await;
    answer.refused(400);
    assert!(answer.text().contains("two steps make the pipeline's output `result`"), "{}", answer.text());
}

#[tokio::test]
async fn a_loop_over_what_a_step_makes_is_one_step_that_holds_a_turn() {
    let server = with_components().await;
    let jobs = json!({
        "list": node("make", json!({})),
        "data": node("make", json!({})),
        "each": node("nested", json!({"count": "2"})),
        "all": {"type": "parallel_for", "body": "${{parent.jobs.each}}", "items": "${{parent.jobs.list.outputs.next}}",
            "max_concurrency": 2},
        "look": node("use", json!({"data": from("data", "out")})),
        "looks": {"type": "parallel_for", "body": "${{parent.jobs.look}}", "items": "${{parent.jobs.list.outputs.out}}"},
        "after": node("use", json!({"data": from("all", "result")})),
    });
    let found = steps(&server, "made", jobs).await;
    assert_eq!(found, ["list<", "data<", "all<list", "looks<list,data", "after<all"]);
    let graph = server.store.read(|tx| {
        let seq = tx.job("default", "made")?.unwrap().job.seq;
        tx.conductor::<domain::pipeline::Graph>(seq)
    });
    let graph = graph.await.unwrap().unwrap();
    let (all, looks) = (graph.steps[2].each.as_ref().unwrap(), graph.steps[3].each.as_ref().unwrap());
    assert_eq!(all.at_once, Some(2));
    assert_eq!(looks.fed.values().collect::<Vec<_>>(), [&(0, "data".to_owned())]);
    let items = domain::pipeline::items_in(r#"{"red": {"count": 7}, "blue": {}}"#).unwrap();
    let turns = all.written_out(items, Default::default()).unwrap();
    let shown = |step: &domain::pipeline::Step| {
        let domain::PlannedInput::Literal { value } = &step.job.plan.inputs["n"] else { panic!("it is a value") };
        let path = step.job.plan.outputs["out"].uri.split_once("/azureml/").unwrap().1.to_owned();
        format!("{} n={value} {path}", step.name)
    };
    let shown: Vec<String> = turns.steps.iter().map(shown).collect();
    assert_eq!(shown, ["each.red.inner n=7 made/each/result/red/", "each.blue.inner n=2 made/each/result/blue/"]);
    assert!(!serde_json::to_string(&turns).unwrap().contains(&all.mark), "the mark is nowhere any more");
    let mut each = node("make", json!({}));
    each["computeId"] = json!("nowhere");
    let jobs = json!({
        "list": node("make", json!({})),
        "each": each,
        "all": {"type": "parallel_for", "body": "${{parent.jobs.each}}", "items": "${{parent.jobs.list.outputs.next}}"},
    });
    let said = told(&server, jobs).await;
    assert!(said.contains("`jobs.each.compute`: there is no compute target `nowhere`"), "{said}");
}

#[tokio::test]
async fn a_parallel_step_is_a_gang_with_what_its_component_says() {
    let server = with_components().await;
    let parallel = json!({"type": "parallel", "inputs": {"data": {"type": "mltable", "mode": "direct"}, "n": {"type": "integer"}},
        "outputs": {"rows": {"type": "uri_file"}}, "input_data": "${{inputs.data}}", "mini_batch_size": "10240",
        "resources": {"instance_count": 2},
        "task": {"type": "run_function", "entry_script": "s.py", "program_arguments": "--n ${{inputs.n}}",
            "append_row_to": "${{outputs.rows}}", "environment": "azureml:AzureML-Minimal@latest"}});
    component(&server, "each", parallel).await;
    let mut each = node("each", json!({"data": from("make", "out"), "n": "2"}));
    each["type"] = json!("parallel");
    let jobs = json!({"make": node("make", json!({})), "each": each.clone(), "last": node("make", json!({}))});
    assert_eq!(steps(&server, "par", jobs).await, ["make<", "each<make", "last<"]);
    let graph = server.store.read(|tx| {
        let seq = tx.job("default", "par")?.unwrap().job.seq;
        tx.conductor::<domain::pipeline::Graph>(seq)
    });
    let plan = &graph.await.unwrap().unwrap().steps[1].job.plan;
    let spread = plan.parallel.as_ref().unwrap();
    assert_eq!((plan.nodes(), spread.rows, spread.mini_batch_size), (2, true, 10_240));
    assert_eq!(spread.append_row_to.as_deref(), Some("rows"));
    each["input_data"] = json!("${{inputs.n2}}");
    let said = told(&server, json!({"make": node("make", json!({})), "each": each.clone()})).await;
    assert!(said.contains("jobs.each.input_data") && said.contains("names no input"), "{said}");
    each["input_data"] = json!("${{inputs.data}}");
    each["task"] = json!({"entry_script": "s.py", "program_arguments": "${{inputs.none}}"});
    let said = told(&server, json!({"make": node("make", json!({})), "each": each})).await;
    assert!(said.contains("inputs.none"), "{said}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_place() {
    let server = with_components().await;
    let use_of = |data: Value| node("use", json!({"data": data}));
    for (jobs, pieces) in [
        (json!({}), &["at least one step"][..]),
        (
            json!({"a": node("make", json!({})), "b": use_of(from("a", "nothing"))}),
            &["jobs.b.inputs.data", "`a` has no output `nothing`"],
        ),
        (
            json!({"a": use_of(from("b", "seen")), "b": use_of(from("a", "seen"))}),
            &["wait for each other", "`a` waits for `b`"],
        ),
        (
            json!({"prepare": node("make", json!({})), "b": use_of(from("prepar", "out"))}),
            &["there is no step `prepar`", "did you mean `prepare`?"],
        ),
        (json!({"a": use_of(json!("text"))}), &["`text` is a value", "uri_folder"]),
        (
            json!({"a": node("make", json!({})), "b": use_of(from("a", "out")), "c": use_of(from("b", "seen"))}),
            &["jobs.c.inputs.data", "a `uri_file` cannot go where a `uri_folder` is wanted"],
        ),
        (json!({"a": node("make", json!({"n": "12"}))}), &["jobs.a.inputs.n", "more than 9"]),
        (
            json!({"a": node("use", json!({"data": from("b", "out"), "nott": "x"})), "b": node("make", json!({}))}),
            &["no input `nott`", "did you mean `note`?"],
        ),
        (json!({"a": node("use", json!({}))}), &["needs a value for `data`"]),
        (json!({"a": node("gone", json!({}))}), &["there is no component `gone:1`", "make, nested, use"]),
        (
            json!({"a": {"componentId": "azureml://registries/azureml/components/gone/versions/1"}}),
            &["there is no component `azureml/gone:1` (create it", "component share --registry-name azureml"],
        ),
        (json!({"a": {"type": "sweep", "trial": {}}}), &["jobs.a", "names no component"]),
        (json!({"a": {"type": "spark"}}), &["jobs.a", "`spark` steps cannot run yet"]),
        (
            json!({"a": {"type": "sweep", "trial": {"componentId": "azureml:make:1"},
                "search_space": {"n": {"type": "choice", "values": []}}, "limits": {"max_total_trials": 2},
                "objective": {"goal": "minimize", "primary_metric": "loss"}}}),
            &["jobs.a.search_space.n.values", "nothing to choose from"],
        ),
        (
            json!({"t": node("make", json!({})), "w": {"type": "do_while", "body": "t", "condition": "true", "limits": {"max_iteration_count": 0}}}),
            &["1 to 1000"],
        ),
        (
            json!({"t": node("make", json!({})), "u": node("make", json!({})), "i": {"type": "if_else", "condition": "true", "true_block": ["t", "u"], "false_block": "t"}}),
            &["jobs.t", "stands in both blocks of `i`"],
        ),
        (
            json!({"t": node("make", json!({})), "i": {"type": "if_else", "condition": "true", "true_block": "t"},
                "j": {"type": "if_else", "condition": "true", "true_block": "t"}}),
            &["jobs.t", "stands in blocks of `i` and of `j`"],
        ),
        (
            json!({"t": node("make", json!({})), "v": {"type": "do_while", "body": "t", "condition": "false"},
                "w": {"type": "do_while", "body": "t", "condition": "false"}}),
            &["jobs.t", "is run by two loops, `v` and `w`"],
        ),
        (
            json!({"t": node("make", json!({})), "w": {"type": "do_while", "body": "t", "condition": "true",
                "mapping": {"next": "n", "more": "n"}, "limits": {"max_iteration_count": 2}}}),
            &["jobs.w.mapping", "two outputs go to the input `n`"],
        ),
    ] {
        let said = told(&server, jobs.clone()).await;
        for piece in pieces {
            assert!(said.contains(&piece.replace('"', "\\\"")), "no `{piece}` in {said} for {jobs}");
        }
    }
}

#[tokio::test]
async fn values_of_the_pipeline_choose_targets_and_artifacts_need_no_declaring() {
    let server = with_components().await;
    let mut chosen = node("make", json!({}));
    chosen["computeId"] = json!("${{parent.inputs.n}}");
    let said = told(&server, json!({"a": chosen})).await;
    assert!(said.contains("there is no compute target `3`"), "{said}");
    let jobs = json!({"a": node("make", json!({})), "b": node("use", json!({"data": from("a", "artifacts")}))});
    assert_eq!(steps(&server, "p", jobs).await, ["a<", "b<a"]);
}

#[tokio::test]
async fn a_thousand_steps_are_accepted_in_a_moment() {
    let server = with_components().await;
    let mut jobs = serde_json::Map::from_iter([("s0".to_owned(), node("make", json!({})))]);
    jobs.extend((1..1000).map(|n| (format!("s{n}"), node("use", json!({"data": from("s0", "out")})))));
    assert_eq!(steps(&server, "wide", Value::Object(jobs)).await.len(), 1000);
}
