//! Files without a type of their own: pipelines, sweeps, components, endpoints, deployments, schedules.

use super::said;
use crate::spec::{
    cannot_run,
    check::{Spec, read},
    shape::Noun,
};
use serde_json::json;

const STEP: &str = "{command: x, environment: 'azureml:e:1'}";

/// Each text gives exactly the mistakes of which pieces are listed; none means that it is valid.
fn each(noun: Noun, head: &str, cases: &[(&str, &[&str])]) {
    for (text, pieces) in cases {
        let text = format!("{head}{text}\n").replace("STEP", STEP);
        let got = said(noun, &text, &[]);
        let all = pieces.iter().all(|piece| got.contains(piece));
        assert!(all && got.lines().count() == pieces.len(), "{text} gave {got:?} instead of {pieces:?}");
    }
}

#[test]
fn pipelines_hold_together() {
    each(
        Noun::Job,
        "type: pipeline\n",
        &[
            ("jobs: {a: STEP}", &[]),
            ("tags: {a: b}", &["`jobs`: the pipeline has no steps"]),
            ("component: ./pipeline.yml", &[]),
            ("jobs: {A-b: STEP}", &["`jobs.A-b`: `A-b` cannot name a step"]),
            ("jobs: {a: {type: command}}", &["`jobs.a`: the step does nothing (give it `component` or `command`)"]),
            ("jobs: {a: {compute: 'azureml:c'}}", &["the step does nothing"]),
            ("jobs: {a: {type: pipeline}}", &["the step does nothing (give it `component`)"]),
            ("jobs: {a: {component: ./a.yml, anything: 1}}", &[]),
            ("jobs: {a: {component: ./a.yml, inputz: 1}}", &["unknown key `inputz`; did you mean `inputs`?"]),
            ("jobs: {a: {command: x, anything: 1}}", &["`jobs.a.anything`: unknown key `anything`"]),
            ("jobs: {a: {type: if_else}}", &["`if_else` is not one of `command`, `sweep`"]),
            ("jobs: {a: {component: c, resources: {instance_count: '${{parent.inputs.n}}'}}}", &[]),
            (
                "inputs: {lr: 1}\njobs: {a: {component: c, inputs: {x: '${{parent.inputs.lrr}}'}}}",
                &[
                    "3:38: `jobs.a.inputs.x`: `${{parent.inputs.lrr}}` names no input; there are: `lr` (did you mean `lr`?)",
                ],
            ),
            (
                "jobs: {a: {component: c, inputs: {x: {path: '${{parent.jobs.b.outputs.o}}'}}}}",
                &["`jobs.a.inputs.x.path`: `${{parent.jobs.b.outputs.o}}` names no step; there are: `a`"],
            ),
            (
                "jobs: {a: STEP, b: {component: c, inputs: {x: '${{parent.jobs.a.outputs.o}}'}}}",
                &["names no output of that step; there are: none"],
            ),
            ("jobs: {a: {component: c}, b: {component: c, inputs: {x: '${{parent.jobs.a.outputs.o}}'}}}", &[]),
            (
                "jobs: {a: {component: c, outputs: {o: '${{parent.outputs.p}}', q: plain}}}",
                &["names no output; there are: none", "text here binds an output of the pipeline"],
            ),
            (
                "jobs: {a: {component: c, inputs: {x: '${{parent.jobs.b.outputs.o}}'}}, b: {component: c, inputs: {x: '${{parent.jobs.a.outputs.o}}'}}}",
                &["`jobs.a`: the steps wait for each other: `a` waits for `b` waits for `a`"],
            ),
            (
                "jobs: {a: {component: c, inputs: {x: '${{parent.jobs.a.outputs.o}}'}}}",
                &["the steps wait for each other: `a` waits for `a`"],
            ),
            (
                "jobs: {a: {command: 'x ${{inputs.dat}}', environment: 'azureml:e:1', inputs: {data: 1}}}",
                &["`jobs.a.command`: `${{inputs.dat}}` names no input; declared: `data` (did you mean `data`?)"],
            ),
            (
                "jobs: {a: STEP}\nsettings: {default_compute: c}",
                &["`c` names none of the computes (write `azureml:name`)"],
            ),
            ("jobs: {a: STEP}\nsettings: {default_compute: serverless, new: 1}", &[]),
        ],
    );
}

#[test]
fn sweeps_can_be_drawn_limited_and_stopped() {
    let head = "type: sweep\ntrial: {command: 'x ${{search_space.lr}}', environment: 'azureml:e:1'}\n\
                objective: {goal: Maximize, primary_metric: acc}\n";
    let rest = "limits: {max_total_trials: 4}\n";
    each(
        Noun::Job,
        &format!("{head}{rest}"),
        &[
            ("search_space: {lr: {type: uniform, min_value: 0.1, max_value: 1e-5}}", &["0.1 is not below `max_value`"]),
            ("search_space: {lr: {type: choice, values: [1, {a: 2}]}}", &[]),
            ("search_space: {lr: {type: choice, values: []}}", &["there is nothing to choose from"]),
            ("search_space: {lr: {type: quniform, min_value: 0, max_value: 1}}", &["`type: quniform` needs `q`"]),
            ("search_space: {lr: {type: normal, mu: 0, sigma: 0}}", &["`search_space.lr.sigma`: 0 is not above 0"]),
            ("search_space: {lr: {type: unifrm}}", &["`unifrm` is not one of"]),
            (
                "search_space: {rate: {type: randint, upper: 3}}",
                &["`${{search_space.lr}}` names no value of the search space"],
            ),
            (
                "sampling_algorithm: grid\nsearch_space: {lr: {type: uniform, min_value: 0, max_value: 1}}",
                &["grid sampling cannot draw from `uniform`"],
            ),
            (
                "search_space: {lr: {type: randint, upper: 3}}\nearly_termination: {type: bandit}",
                &["needs `slack_factor` or `slack_amount`"],
            ),
            (
                "search_space: {lr: {type: randint, upper: 3}}\nearly_termination: {type: bandit, slack_factor: 1, slack_amount: 1}",
                &["exclude each other"],
            ),
            (
                "search_space: {lr: {type: randint, upper: 3}}\nearly_termination: {type: truncation_selection, truncation_percentage: 100}",
                &["it must be from 1 to 99"],
            ),
        ],
    );
    let space = "search_space: {lr: {type: randint, upper: 3}}\n";
    each(
        Noun::Job,
        &format!("{head}{space}"),
        &[
            ("", &["`type: sweep` needs `limits`"]),
            ("limits: {max_total_trials: 2, max_concurrent_trials: 3}", &["it is larger than `max_total_trials`"]),
        ],
    );
}

#[test]
fn components_declare_what_they_use() {
    each(
        Noun::Component,
        "name: a_b\nenvironment: azureml:e:1\n",
        &[
            ("command: echo", &[]),
            ("type: command", &["`type: command` needs `command`"]),
            ("command: x ${{inputs.a}} $[[ ${{inputs.b}} ]]\ninputs: {a: {type: string}}", &[]),
            ("command: x ${{inputs.a}}", &["`${{inputs.a}}` names no input; declared: none"]),
            ("command: x\ninputs: {a: {type: integer, default: 1.5}}", &["`1.5` is no value of `type: integer`"]),
            ("command: x\ninputs: {a: {type: integer, default: '3', min: 4}}", &["it lies outside `min` and `max`"]),
            ("command: x\ninputs: {a: {type: number, min: 4, max: 1}}", &["it is larger than `max`"]),
            ("command: x\ninputs: {a: {type: string, enum: [x, y], default: z}}", &["`z` is not one of `enum`"]),
            ("command: x\ninputs: {a: {type: uri_file, min: 1}}", &["`min` means nothing for `type: uri_file`"]),
            ("command: x\ninputs: {a: {type: strng}}", &["`strng` is not one of"]),
            ("command: x\ninputs: {a: {default: 1}}", &["`inputs.a.type`: `type` is required"]),
            ("command: x\ncomment: anything new is kept", &[]),
        ],
    );
    let said = said(Noun::Component, "name: A-b\ncommand: x\nenvironment: e\n", &[]);
    assert!(said.contains("f.yml:1:7: `name`: `A-b` cannot name a component"), "{said}");
    assert!(said.contains("`e` names none of the environments"), "{said}");
}

#[test]
fn endpoints_and_deployments_are_checked() {
    each(
        Noun::OnlineEndpoint,
        "name: abc\n",
        &[
            ("auth_mode: Key\ntraffic: {blue: 90, green: 10}", &[]),
            ("traffic: {blue: 90}", &["`traffic`: the shares add up to 90"]),
            ("mirror_traffic: {a: 1, b: 1}", &["only one deployment can get copies"]),
            ("compute: c", &["`c` names none of the computes"]),
            ("scoring_uri: http://x\nprovisioning_state: Succeeded", &[]),
        ],
    );
    each(
        Noun::BatchEndpoint,
        "",
        &[("name: a_b", &["`a_b` cannot name an endpoint"]), ("auth_mode: key", &["`name` is required"])],
    );
    let head = "name: blue\nendpoint_name: abc\n";
    each(
        Noun::OnlineDeployment,
        head,
        &[
            ("instance_type: Standard_DS3_v2\nmodel: azureml:m:1", &[]),
            ("model: azureml:m@latest", &["`instance_type` is required"]),
            ("instance_type: s\nmodel: azureml:m", &["a version or label is missing"]),
            (
                "instance_type: s\nmodel: {path: .}\ncode_configuration: {code: .}",
                &["give both `code` and `scoring_script`"],
            ),
            (
                "type: kubernetes\nscale_settings: {type: target_utilization, min_instances: 3, max_instances: 2}",
                &["it is larger than `max_instances`"],
            ),
            ("instance_type: s\nscale_settings: {type: target_utilization}", &["scale by themselves"]),
            ("instance_type: s\nliveness_probe: {period: 0}", &["0 is out of range"]),
        ],
    );
    each(
        Noun::BatchDeployment,
        head,
        &[
            ("type: model\ncompute: azureml:c\nsettings: {mini_batch_size: 3}", &[]),
            (
                "type: model\nmini_batch_size: 3",
                &["unknown key `mini_batch_size` here (move it under `settings`)", "needs `compute`"],
            ),
            ("mini_batch_size: 3\noutput_action: summary_only\noutput_file_name: x", &["there is no file"]),
            ("type: pipeline\ncomponent: ./p.yml\njob_definition: azureml:j", &["exclude each other"]),
        ],
    );
}

#[test]
fn a_deployments_endpoint_may_come_from_outside() {
    let text = "name: blue\ninstance_type: s\nmodel: azureml:m:1\n";
    assert!(said(Noun::OnlineDeployment, text, &[]).contains("`endpoint_name` is required"));
    assert_eq!(said(Noun::OnlineDeployment, text, &["endpoint_name=abc"]), "");
}

#[test]
fn schedules_have_a_trigger_that_can_fire() {
    each(
        Noun::Schedule,
        "name: s\ncreate_job: ./job.yml\n",
        &[
            ("trigger: {type: cron, expression: '*/15 8-18 * jan mon,3'}", &[]),
            ("trigger: {type: cron, expression: 0 8 * *}", &["has 4 fields; five are needed"]),
            ("trigger: {type: cron, expression: 61 8 * * *}", &["`61` is not a minute: 0 to 59"]),
            ("trigger: {type: cron, expression: '5-1 8 * * *'}", &["`5-1` is not a minute"]),
            (
                "trigger: {type: recurrence, frequency: week, interval: 1, schedule: {hours: [8], minutes: 0, week_days: [Monday]}}",
                &[],
            ),
            (
                "trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: 24, minutes: 0}}",
                &["24 is out of range"],
            ),
            (
                "trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: 8, minutes: 0, month_days: 3}}",
                &["`month_days` means nothing with `frequency: day`"],
            ),
            (
                "trigger: {type: cron, expression: 0 8 * * *, start_time: 2026-02-01T00:00:00, end_time: 2026-01-01T00:00:00}",
                &["it lies before `start_time`"],
            ),
            ("trigger: {type: cron, expression: 0 8 * * *, start_time: soon}", &["`soon` is no time"]),
            ("trigger: {type: cron, expression: 0 8 31 2 *}", &["no such day exists"]),
            (
                "trigger: {type: cron, expression: 0 8 * * *, time_zone: Europe/Berlim}",
                &["did you mean `Europe/Berlin`?"],
            ),
            ("trigger: {type: event, on: data, name: iris}", &[]),
            ("trigger: {type: event, on: job, experiment_name: e, status: [failed]}", &[]),
            ("trigger: {type: event, on: data}", &["`trigger.name`: it is missing"]),
            ("tags: {a: b}", &["`trigger`: `trigger` is required"]),
        ],
    );
    assert!(
        said(Noun::Schedule, "name: s\ntrigger: {type: cron, expression: 0 8 * * *}\n", &[]).contains("makes nothing")
    );
}

#[test]
fn a_tree_is_the_file_with_nothing_filled_in() {
    let text = "$schema: https://x/pipelineJob.schema.json\ntype: Pipeline\nstatus: Completed\n\
                jobs:\n  a: {component: ./a.yml, outputs: {o: }, inputs: {lr: 0.1, n: '${{parent.inputs.n}}'}, new: [1]}\n\
                inputs: {n: 3}\n";
    let spec = read(Noun::Job, "f.yml", text, &["inputs.n=4".to_owned()]).unwrap();
    let expected = json!({
        "type": "pipeline",
        "jobs": {"a": {"component": "./a.yml", "outputs": {"o": {}}, "inputs": {"lr": 0.1, "n": "${{parent.inputs.n}}"}, "new": [1]}},
        "inputs": {"n": 4}
    });
    assert_eq!(spec, Spec::Tree(Noun::Job, expected));
    assert_eq!(cannot_run(&spec), None);
    let spark = read(Noun::Job, "", "type: spark\nentry: {file: x.py}\ncode: .\n", &[]).unwrap();
    let said = "`type: spark` jobs cannot run yet; command, pipeline and sweep jobs can";
    assert_eq!(cannot_run(&spark).unwrap().message, said);
    assert_eq!(cannot_run(&read(Noun::Job, "", "command: x\nenvironment: e", &[]).unwrap()), None);
}

#[test]
fn workspaces_name_real_resources() {
    let id = "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/s";
    each(
        Noun::Workspace,
        "name: abc\n",
        &[
            (&format!("storage_account: {id}"), &[]),
            ("key_vault: /subscriptions/<ID>/resourceGroups/g/providers/p/vaults/v", &["is no resource id"]),
            ("customer_managed_key: {key_uri: 'https://<KEY>.vault.azure.net/keys/k'}", &["is no URL"]),
            ("customer_managed_key: {key_uri: 'https://v.vault.azure.net/keys/k/1'}", &[]),
        ],
    );
    each(Noun::Registry, "name: abc\n", &[("location: here", &[]), ("tags: {a: b}", &["`location` is required"])]);
}
