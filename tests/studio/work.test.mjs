// Pipelines, sweeps, schedules, batch endpoints, assets and compute in a real browser, with real ones of each.
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axeFinds, browse, shoot, World } from "./world.mjs";

let world, tab, page;
const made = {};
const open = (path) => page.goto(`${world.url}/studio/default${path}`);
const sees = (text, within = "main") => page.locator(within).getByText(text).first().waitFor({ timeout: 20_000 });
const choice = (name) => page.getByRole("combobox", { name, exact: true });
const examples = new URL("../../examples/", import.meta.url).pathname;
const image = { image: "python:3.12-slim" };

/** A step that reads a folder and writes another. */
const step = (name, line) => ({
  type: "command",
  name,
  version: "1",
  inputs: { numbers: { type: "uri_folder" } },
  outputs: { result: { type: "uri_folder" } },
  environment: image,
  command: line,
});

function pipeline() {
  const first = { ...step("make", "seq 5 > ${{outputs.result}}/numbers.txt"), inputs: {} };
  const inner = {
    type: "pipeline",
    name: "tidy",
    version: "1",
    inputs: { raw: { type: "uri_folder" } },
    outputs: { clean: { type: "uri_folder" } },
    jobs: {
      sort: { type: "command", component: "./sort.yml", inputs: { numbers: "${{parent.inputs.raw}}" } },
      count: { type: "command", component: "./count.yml", inputs: { numbers: "${{parent.jobs.sort.outputs.result}}" }, outputs: { result: "${{parent.outputs.clean}}" } },
    },
  };
  const files = {
    "make.yml": first,
    "sort.yml": step("sort", "sort ${{inputs.numbers}}/numbers.txt > ${{outputs.result}}/numbers.txt"),
    "count.yml": step("count", "wc -l ${{inputs.numbers}}/numbers.txt > ${{outputs.result}}/count.txt"),
    "show.yml": step("show", "cat ${{inputs.numbers}}/count.txt; echo done > ${{outputs.result}}/done.txt"),
    "tidy.yml": inner,
  };
  for (const [name, spec] of Object.entries(files)) writeFileSync(join(world.home, name), JSON.stringify(spec));
  return world.make("job", {
    type: "pipeline",
    display_name: "nightly numbers",
    experiment_name: "numbers",
    settings: { default_compute: "azureml:local" },
    jobs: {
      make: { type: "command", component: "./make.yml" },
      tidy: { type: "pipeline", component: "./tidy.yml", inputs: { raw: "${{parent.jobs.make.outputs.result}}" } },
      show: { type: "command", component: "./show.yml", inputs: { numbers: "${{parent.jobs.tidy.outputs.clean}}" } },
    },
  });
}

const over = (name) => world.until(`${name} is over`, () => /Completed|Failed|Canceled/.test(world.status(name)), 120);

before(async () => {
  world = new World();
  made.pipeline = pipeline();
  made.sweep = world.make("job", {
    type: "sweep",
    display_name: "rates and depths",
    experiment_name: "search",
    trial: { command: "python3 train.py ${{search_space.rate}} ${{search_space.depth}} 0 8", code: world.code, environment: image, environment_variables: { HOSTILE: "x" } },
    compute: "azureml:local",
    sampling_algorithm: "random",
    search_space: { rate: { type: "uniform", min_value: 0.01, max_value: 0.9 }, depth: { type: "choice", values: [2, 3, 4] } },
    objective: { goal: "minimize", primary_metric: "loss" },
    limits: { max_total_trials: 5, max_concurrent_trials: 2 },
  });
  // The first trial is good; whoever is worse by more than nothing is stopped at its second value.
  made.stopping = world.make("job", {
    type: "sweep",
    display_name: "the worse are stopped",
    experiment_name: "search",
    trial: { command: "python3 train.py ${{search_space.rate}} ${{search_space.depth}} 1 15", code: world.code, environment: image, environment_variables: { HOSTILE: "x" } },
    compute: "azureml:local",
    sampling_algorithm: "grid",
    search_space: { rate: { type: "choice", values: [0.9] }, depth: { type: "choice", values: [1, 50] } },
    objective: { goal: "minimize", primary_metric: "loss" },
    early_termination: { type: "bandit", slack_amount: 0.01, evaluation_interval: 1, delay_evaluation: 2 },
    limits: { max_total_trials: 2, max_concurrent_trials: 2 },
  });
  tab = await browse();
  page = tab.page;
  page.on("dialog", (dialog) => dialog.accept().catch(() => undefined));
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

test("a pipeline is a graph that lives, with the steps of what is nested in it", async () => {
  await open(`/jobs/${made.pipeline}/children`);
  const graph = page.getByRole("img", { name: /^Graph of 4 steps/ });
  await graph.waitFor();
  await graph.getByText(/tidy.*count/).waitFor();
  await over(made.pipeline);
  await page.getByRole("table", { name: "Steps" }).getByText("Completed").nth(3).waitFor();
  await shoot(page, "pipeline");
  await choice("Show").selectOption("tidy");
  await page.getByRole("img", { name: /^Graph of 2 steps/ }).waitFor();
  await page.goto(page.url());
  await page.getByRole("img", { name: /^Graph of 2 steps/ }).waitFor();
  assert.equal(world.status(made.pipeline), "Completed");
});

test("a second run of it reuses what the first has made, and says so", async () => {
  const second = pipeline();
  await over(second);
  await open(`/jobs/${second}/children`);
  await page.getByRole("img", { name: /^Graph of 4 steps/ }).getByText("reused").nth(3).waitFor();
  await shoot(page, "pipeline-reused");
  await page.getByRole("table", { name: "Steps" }).getByRole("link").nth(1).click();
  await page.getByRole("heading", { name: /make/ }).waitFor();
});

test("a sweep lists its trials, the best first, and compares them", async () => {
  await over(made.sweep);
  await open(`/jobs/${made.sweep}/children`);
  await sees("Trials (5), the best first");
  const scores = await page.getByRole("table", { name: "Trials" }).locator("tbody td:nth-child(3)").allTextContents();
  assert.deepEqual(scores.map(Number), scores.map(Number).sort((a, b) => a - b));
  await shoot(page, "sweep");
  await page.getByRole("link", { name: "Compare them" }).click();
  await page.getByRole("img", { name: /5 runs across/ }).waitFor();
  const points = page.getByRole("img", { name: /^5 runs: metrics\.\w+ over params\.\w+/ });
  await choice("Across").selectOption("params.rate");
  await world.until("every run is a point", async () => (await points.locator("circle").count()) === 5);
  await points.scrollIntoViewIfNeeded();
  await sees("What goes along with");
  await shoot(page, "scatter");
});

test("a trial that was stopped early says why", async () => {
  await over(made.stopping);
  await open(`/jobs/${made.stopping}/children`);
  await sees("1, each with its reason below");
  await page.getByRole("table", { name: "Trials" }).getByText(/bandit/).waitFor();
  await page.getByRole("link", { name: /^loss = 0\./ }).waitFor();
  await shoot(page, "sweep-stopped");
});

test("a component says which pipelines are made of it", async () => {
  const spec = { ...step("shout", "tr a-z A-Z < ${{inputs.numbers}}/numbers.txt > ${{outputs.result}}/numbers.txt") };
  world.make("component", spec);
  const first = { type: "command", component: "./make.yml" };
  const second = { type: "command", component: "azureml:shout:1", inputs: { numbers: "${{parent.jobs.make.outputs.result}}" } };
  world.make("job", { type: "pipeline", display_name: "shouts", settings: { default_compute: "azureml:local" }, jobs: { make: first, shout: second } });
  await open("/components/shout");
  await page.getByText("Where it is used").click();
  await page.getByRole("link", { name: "shouts" }).waitFor();
  await sees("component of a pipeline");
  await shoot(page, "component");
});

test("what a job wrote becomes an asset, which knows where it came from and where it is used", async () => {
  const trained = world.train(0.5, 2, { steps: 3 });
  await over(trained);
  await open(`/jobs/${trained}`);
  await page.getByRole("button", { name: "Register…" }).click();
  await choice("As").selectOption("data uri_folder");
  await page.getByRole("textbox", { name: "Name" }).fill("reports");
  await page.getByRole("dialog").getByRole("button", { name: "Register" }).click();
  await page.getByRole("heading", { name: "reports" }).waitFor();
  await page.getByRole("link", { name: trained }).waitFor();
  const reader = world.job("reads the reports", "ls ${{inputs.reports}}", { inputs: { reports: { type: "uri_folder", path: "azureml:reports@latest" } } });
  await over(reader);
  await page.getByText("Where it is used").click();
  await page.getByRole("link", { name: "reads the reports" }).waitFor();
  await shoot(page, "lineage");
  await page.getByRole("link", { name: "reads the reports" }).click();
  await page.getByRole("link", { name: "azureml:reports@latest" }).click();
  await page.getByRole("heading", { name: "reports" }).waitFor();
});

test("a model is deployed from its page, or tells which file to write", async () => {
  world.cli("model", "create", "-n", "plain", "-v", "1", "--path", join(world.home, "make.yml"), "--type", "custom_model");
  await open("/models/plain");
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page.getByLabel("deployment.yml").getByText("azureml:plain:1").waitFor();
  await page.getByRole("button", { name: "Leave it" }).click();
  world.cli("model", "create", "-n", "celsius", "-v", "1", "--path", join(examples, "mlflow-model/model"), "--type", "mlflow_model");
  await open("/models/celsius");
  await page.getByRole("button", { name: "Deploy…" }).click();
  await shoot(page, "deploy");
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await page.waitForURL(/\/endpoints\/celsius/);
  await sees("of 1 replicas are ready");
  world.cli("online-endpoint", "delete", "-n", "celsius", "--yes");
});

test("a schedule is switched, started by hand, and tells what it has started", async () => {
  const job = { type: "command", command: "echo hi", environment: image, compute: "azureml:local", display_name: "by night" };
  writeFileSync(join(world.home, "night.yml"), JSON.stringify(job));
  world.make("schedule", {
    name: "nightly",
    description: "every night",
    trigger: { type: "cron", expression: "0 3 * * *", time_zone: "UTC" },
    create_job: { type: "command", job: "./night.yml" },
  });
  await open("/schedules");
  await page.getByRole("link", { name: "nightly" }).click();
  await sees(/starts next at/);
  await page.getByRole("button", { name: "Start now" }).click();
  // The first was started when it was made, the second by hand.
  await page.getByRole("table", { name: "What it has started" }).getByRole("link").nth(1).waitFor();
  await shoot(page, "schedule");
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.locator(".badge", { hasText: "Off" }).waitFor();
  assert.equal(world.cli("schedule", "show", "-n", "nightly", "--query", "is_enabled", "-o", "tsv").trim().toLowerCase(), "false");
  await open("/schedules");
  await page.getByRole("button", { name: "Switch on" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "nightly" }).click();
  await page.getByRole("button", { name: "Switch on" }).click();
  await sees(/starts next at/);
});

test("a batch endpoint is called and shows the jobs it has started", async () => {
  const folder = join(world.home, "batch");
  cpSync(join(examples, "batch-endpoint"), folder, { recursive: true });
  world.cli("batch-endpoint", "create", "-f", join(folder, "endpoint.yml"), "-o", "none");
  world.cli("batch-deployment", "create", "-f", join(folder, "deployment.yml"), "--set-default", "-o", "none");
  world.cli("data", "create", "-n", "houses", "-v", "1", "--path", join(folder, "data"), "--type", "uri_folder");
  await open("/batch");
  await page.getByRole("link", { name: "house-prices-nightly" }).click();
  await page.getByRole("button", { name: "Score data…" }).click();
  await page.getByLabel("Where").fill("azureml:houses:1");
  await page.getByRole("button", { name: "Start the job" }).click();
  await page.waitForURL(/\/jobs\//);
  const job = decodeURIComponent(page.url().split("/").at(-1));
  await over(job);
  assert.equal(world.status(job), "Completed");
  await open("/batch/house-prices-nightly");
  await page.getByRole("table", { name: "Jobs" }).getByRole("link", { name: job }).waitFor();
  await shoot(page, "batch");
});

test("attaching ends in checks and in what to do about them", async () => {
  await open("/compute");
  await page.getByRole("button", { name: "Kubernetes…" }).click();
  await page.getByLabel("Name of the target").fill("lab");
  await page.getByLabel("Name of the cluster").fill("lab-cluster");
  await page.getByRole("button", { name: "Attach", exact: true }).click();
  const checks = page.getByRole("table", { name: "Checks of lab" });
  await checks.getByText("extension", { exact: true }).waitFor();
  await sees(/peregrine extension install --cluster-name lab-cluster/);
  await page.getByRole("button", { name: "A machine over SSH…" }).click();
  await page.getByLabel("Name of the target").fill("box");
  await page.getByRole("textbox", { name: "Address" }).fill("127.0.0.1");
  // Where nothing listens.
  await page.getByLabel("Port").fill("1");
  await page.getByRole("textbox", { name: /^User/ }).fill("ada");
  await choice("Signs in with").selectOption("password");
  await page.getByRole("textbox", { name: "Password" }).fill("not to be seen");
  await shoot(page, "attach");
  await page.getByRole("button", { name: "Attach", exact: true }).click();
  await page.getByRole("table", { name: "Checks of box" }).getByText("connect", { exact: true }).waitFor({ timeout: 30_000 });
  await checks.scrollIntoViewIfNeeded();
  await shoot(page, "checks");
  assert.ok(!(await page.content()).includes("not to be seen"), "a password is not shown again");
  for (const name of ["lab", "box"]) {
    await page.locator(".card", { has: page.getByRole("heading", { name, exact: true }) }).getByRole("button", { name: "Detach…" }).click();
    await page.getByRole("heading", { name, exact: true }).waitFor({ state: "detached" });
  }
});

test("a cluster made in the studio brings a node for a job, and shows it", async () => {
  await open("/compute");
  await page.getByRole("button", { name: "A cluster of nodes…" }).click();
  await page.getByLabel("Name of the target").fill("crew");
  await page.getByLabel("Nodes at most").fill("1");
  await page.getByRole("button", { name: "Make it" }).click();
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "crew", exact: true }) });
  await card.locator("header .badge", { hasText: "Succeeded" }).waitFor();
  const job = world.job("on a node of the crew", "echo hi", { compute: "azureml:crew" });
  await over(job);
  assert.equal(world.status(job), "Completed");
  await page.getByRole("table", { name: "Nodes of crew" }).locator("tbody tr").first().waitFor();
  await card.scrollIntoViewIfNeeded();
  await shoot(page, "cluster");
  await card.getByText("Use over time").click();
  await card.getByText("Jobs and nodes").waitFor();
  await shoot(page, "cluster-past");
  await card.getByRole("button", { name: "Resize…" }).click();
  await page.getByLabel("Nodes at most").fill("3");
  await page.getByRole("button", { name: "Resize", exact: true }).click();
  await card.getByText(/0 to 3, gone after 2 min/).waitFor();
  await card.getByRole("button", { name: /^Take back / }).first().click();
  await card.locator(".badge", { hasText: /preempted|leaving|unusable/ }).waitFor();
});

test("a pool stands for several targets", async () => {
  await open("/compute");
  await page.getByRole("button", { name: "A pool of targets…" }).click();
  await page.getByLabel("Name of the target").fill("anywhere");
  await page.getByLabel("Targets").fill("crew, local");
  await page.getByRole("button", { name: "Make it" }).click();
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "anywhere", exact: true }) });
  await card.getByText("crew, local").waitFor();
  const job = world.job("wherever there is room", "echo hi", { compute: "azureml:anywhere" });
  await over(job);
  assert.equal(world.status(job), "Completed");
  await page.getByRole("table", { name: "Use in default" }).locator("tbody tr").first().waitFor();
});

test("these pages are readable for everyone too", async () => {
  const found = [];
  const paths = [`/jobs/${made.pipeline}/children`, `/jobs/${made.sweep}/children`, "/schedules", "/schedules/nightly", "/batch", "/batch/house-prices-nightly", "/data/reports", "/compute"];
  for (const [colorScheme, width] of [["light", 1280], ["dark", 820]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    for (const path of paths) {
      await open(path);
      await page.locator("main h1").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("[aria-busy='true']"));
      found.push(...(await axeFinds(page)).map((what) => `${colorScheme} ${path}: ${what}`));
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) found.push(`${width} px ${path}: wider than the window`);
    }
  }
  assert.deepEqual(found, []);
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
