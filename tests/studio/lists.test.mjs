// The lists of the studio: many runs and what is done with those chosen, views, assets, endpoints and how they are, use by team.
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ask as asked, axeFinds, browse, mlflow, shoot, World } from "./world.mjs";

let world, tab, page;
const open = (path) => page.goto(`${world.url}/studio/default${path}`);
const sees = (text, within = "main") => page.locator(within).getByText(text).first().waitFor({ timeout: 20_000 });
const examples = new URL("../../examples/", import.meta.url).pathname;
const RUNS = 240;

const ask = (method, path, body) => asked(world, tab, method, path, body);
const track = (path, body) => mlflow(world, tab, path, body);

/** A run that is no job. */
async function run(name, start) {
  const { run } = await track("runs/create", { experiment_id: "0", run_name: name, start_time: start });
  return run.info.run_id;
}

async function tags(id) {
  const { run } = await ask("GET", `/mlflow/v2.0${world.names}/api/2.0/mlflow/runs/get?run_id=${id}`);
  return Object.fromEntries((run.data.tags ?? []).map(({ key, value }) => [key, value]));
}

const table = () => page.getByRole("table", { name: "Jobs" });
const scrollTo = (top) => table().getByRole("rowgroup").evaluate((body, to) => body.scrollTo(0, to === "end" ? body.scrollHeight : to), top);

before(async () => {
  world = new World();
  tab = await browse();
  page = tab.page;
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

test("what is chosen stays chosen while runs come and pages go, and every one of it is tagged", async () => {
  const start = Date.now() - 1_000_000;
  const ids = {};
  for (let n = 0; n < RUNS; n++) ids[n] = await run(`plain ${n}`, start + n * 1000);
  const job = world.job("a job among runs", "echo hi");
  await world.until("the job is over", () => world.status(job) === "Completed");
  await open("/jobs");
  await page.getByRole("status").getByText(`${RUNS + 1} jobs`).waitFor();
  await page.getByText("Columns").click();
  await page.getByLabel("Find a column").fill("tags.team");
  await page.getByRole("button", { name: "Add tags.team" }).click();
  await page.getByText("Columns").click();
  await table().getByRole("columnheader", { name: "team" }).waitFor();
  await page.getByLabel("Choose a job among runs").check();
  await scrollTo("end");
  await page.getByLabel("Choose plain 3", { exact: true }).check();
  // Something new at the top, seen there: pages that are not in sight are put aside.
  await scrollTo(0);
  await run("came meanwhile", Date.now());
  await sees("came meanwhile");
  await page.getByRole("status").getByText(`${RUNS + 2} jobs`).waitFor();
  await page.getByText("2 chosen").waitFor();
  page.once("dialog", (dialog) => dialog.accept("team=vision"));
  await page.getByRole("button", { name: "Tag…" }).click();
  await page.getByRole("toolbar").waitFor({ state: "detached" });
  assert.equal((await tags(ids[3])).team, "vision", "the one whose page was put aside");
  assert.equal((await tags(job)).team, "vision", "a job");
  assert.match(world.cli("job", "show", "-n", job, "--query", "tags", "-o", "json"), /"team": "vision"/);
});

test("after an act the rows in sight are fresh, wherever that is, and a new filter shows nothing old", async () => {
  await open("/jobs?columns=tags.team");
  await sees("came meanwhile");
  await scrollTo("end");
  await page.getByLabel("Choose plain 1", { exact: true }).check();
  page.once("dialog", (dialog) => dialog.accept("team=speech"));
  await page.getByRole("button", { name: "Tag…" }).click();
  await table().getByRole("row", { name: /plain 1 .*speech/ }).waitFor();
  await shoot(page, "jobs-tagged");
  await page.getByLabel("Filter", { exact: true }).fill("attributes.run_name = 'plain 7'");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("1 job", { exact: true }).waitFor();
  await sees("plain 7");
  await world.until("one row is left", async () => (await table().getByRole("row").count()) === 2);
});

test("a table says how it is in order, and the filter which completion is meant", async () => {
  await open("/jobs");
  await page.getByRole("button", { name: "Name", exact: true }).click();
  await page.locator("[role=columnheader][aria-sort=descending]", { hasText: "Name" }).waitFor();
  await page.getByRole("button", { name: /^Name/ }).click();
  await page.locator("[role=columnheader][aria-sort=ascending]", { hasText: "Name" }).waitFor();
  const filter = page.getByRole("combobox", { name: "Filter" });
  await filter.fill("attr");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const active = await filter.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${active}`).textContent(), "attributes.run_name");
  assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
});

test("a view is kept in the browser, and one that cannot be read breaks nothing", async () => {
  await open("/jobs?q=attributes.run_name%20%3D%20'plain%209'&columns=tags.team");
  await page.locator("summary", { hasText: "Views" }).click();
  page.once("dialog", (dialog) => dialog.accept("nines"));
  await page.getByRole("button", { name: "Keep this view…" }).click();
  await open("/jobs");
  await sees("came meanwhile");
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByRole("button", { name: "nines", exact: true }).click();
  await page.getByRole("status").getByText("1 job", { exact: true }).waitFor();
  await table().getByRole("columnheader", { name: "team" }).waitFor();
  await page.getByRole("button", { name: "Forget view nines" }).click();
  await page.getByRole("button", { name: "nines", exact: true }).waitFor({ state: "detached" });
  for (const broken of ["{", "[1]", '{"a": 1}', "null"]) {
    await page.evaluate((text) => localStorage.setItem("views", text), broken);
    await open("/jobs");
    await sees("came meanwhile");
  }
  assert.deepEqual(tab.faults, []);
});

test("more versions than fit on a page are there, and one of them has an address", async () => {
  for (let n = 1; n <= 104; n++) {
    const properties = { dataType: "uri_file", dataUri: `https://example.org/${n}.csv` };
    await ask("PUT", `${world.names}/data/prices/versions/${n}`, { properties });
  }
  await open("/data/prices");
  await page.getByRole("button", { name: "Show more of 104 versions" }).click();
  await page.getByRole("heading", { name: "Version 70", exact: true }).waitFor();
  await open("/data/prices?version=2");
  await page.locator(".linked.here", { hasText: "Version 2" }).waitFor();
  await page.getByRole("link", { name: "Address of version 104" }).click();
  await page.waitForURL(/version=104/);
  await page.locator(".linked.here", { hasText: "Version 104" }).waitFor();
});

test("what a run wrote becomes a model, and the model a deployment", async () => {
  cpSync(join(examples, "mlflow-model/model"), join(world.code, "model"), { recursive: true });
  const job = world.job("writes a model", "mkdir -p outputs && cp -r model outputs/");
  await world.until("it is over", () => world.status(job) === "Completed");
  await open(`/jobs/${job}`);
  await page.getByRole("button", { name: "Register…" }).click();
  const asks = page.getByRole("dialog");
  await asks.getByRole("combobox", { name: "As" }).selectOption("models mlflow_model");
  await asks.getByRole("textbox", { name: "Name" }).fill("celsius");
  await asks.getByLabel("Path in it").fill("outputs/model");
  await asks.getByRole("button", { name: "Register" }).click();
  await page.getByRole("heading", { name: "celsius" }).waitFor();
  await page.getByRole("link", { name: job }).waitFor();
  await page.getByRole("button", { name: "Deploy…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deploy", exact: true }).click();
  await page.waitForURL(/\/endpoints\/celsius\?deployment=version-1/);
  const card = page.locator(".linked.here", { has: page.getByRole("heading", { name: "version-1" }) });
  await card.getByText(/of 1 replicas are ready/).waitFor();
  await card.getByRole("link", { name: "celsius:1" }).click();
  await page.waitForURL(/\/models\/celsius\?version=1/);
  await page.getByText("Where it is used").click();
  await page.getByRole("link", { name: "version-1 of celsius" }).click();
  await page.waitForURL(/deployment=version-1/);
});

test("an endpoint that does not answer is called so, with the reason", async () => {
  world.make("online-endpoint", { name: "empty", auth_mode: "key" });
  await open("");
  const row = (name) => page.locator("li", { has: page.getByRole("link", { name, exact: true }) });
  await row("empty").locator(".badge", { hasText: "Empty" }).waitFor();
  await row("empty").getByText("no deployment is behind it").waitFor();
  world.make("online-endpoint", { name: "broken", auth_mode: "key" });
  writeFileSync(join(world.code, "score.py"), "def init(): pass\ndef run(data): return data\n");
  writeFileSync(join(world.home, "never.yml"), "name: never\ndependencies:\n- python=3.11\n- pip:\n  - there-is-no-such-package-anywhere==99.9\n");
  world.make("online-deployment", {
    name: "blue",
    endpoint_name: "broken",
    model: { path: join(world.code, "score.py") },
    code_configuration: { code: world.code, scoring_script: "score.py" },
    environment: { image: "python:3.11-slim", conda_file: join(world.home, "never.yml") },
    instance_type: "Standard_DS1_v2",
    instance_count: 1,
  }, "--no-wait");
  await row("broken").locator(".badge", { hasText: "Failing" }).waitFor({ timeout: 120_000 });
  await row("broken").getByText(/0 of \d replicas are ready/).waitFor();
  await shoot(page, "home-failing");
  await open("/endpoints");
  const line = page.getByRole("table", { name: "Endpoints" }).getByRole("row", { name: /^broken/ });
  await line.locator(".badge.bad", { hasText: "Failing" }).waitFor();
  assert.equal(world.cli("online-endpoint", "show", "-n", "broken", "--query", "provisioning_state", "-o", "tsv").trim(), "Succeeded");
});

test("traffic goes by single percents, warns of who does not answer, and overwrites nobody", async () => {
  await open("/endpoints/broken");
  await page.getByLabel("Percent of blue").fill("100");
  await sees("no replica is ready; requests it gets wait or fail");
  // Someone else is faster.
  const path = `${world.names}/onlineEndpoints/broken`;
  const current = await ask("GET", path);
  await ask("PUT", path, { ...current, properties: { ...current.properties, description: "changed by another" } });
  await sees("changed by another");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("alert").getByText(/has changed since you read it/).waitFor();
  assert.equal((await ask("GET", path)).properties.description, "changed by another");
  await page.getByRole("button", { name: "Leave it" }).click();
  await page.getByLabel("Percent of blue").fill("99");
  assert.ok(await page.getByRole("button", { name: "Apply" }).isDisabled(), "99% is not all");
  await page.getByLabel("Share of blue").fill("100");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Apply" }).waitFor({ state: "detached" });
  assert.deepEqual((await ask("GET", path)).properties.traffic, { blue: 100 });
});

test("who uses how much is told by team and by workspace, with one question", async () => {
  const ada = JSON.parse(world.cli("principal", "create", "--name", "ada", "--role", "contributor", "-o", "json"));
  await open("/workspace");
  await sees("peregrine workspace team -n default --team");
  world.cli("workspace", "team", "-n", "default", "--team", "vision", "--people", "ada");
  world.cli("workspace", "create", "-n", "annex");
  const body = { properties: { jobType: "Command", command: "sleep 300", computeId: "azureml:local", environmentId: "azureml:AzureML-Minimal@latest" } };
  const sent = await tab.context.request.put(`${world.url}${world.names}/jobs/adas`, { headers: { authorization: `Bearer ${ada.token}` }, data: body });
  assert.ok(sent.ok(), await sent.text());
  await world.until("it runs", () => world.status("adas") === "Running");
  const asked = [];
  page.on("request", (request) => /\/usage\?|\/listNodes/.test(request.url()) && asked.push(request.url()));
  await open("/compute");
  await page.reload();
  const teams = page.getByRole("table", { name: "Use by team" });
  await teams.getByRole("row", { name: /^vision 1 / }).waitFor();
  await page.getByRole("table", { name: "Use by workspace" }).getByRole("row", { name: /^annex 0 / }).waitFor();
  assert.ok(asked.length > 0 && asked.every((url) => url.includes("/workspaces/default/usage")), asked.join("\n"));
  await page.getByRole("table", { name: "Nodes of local" }).locator("tbody tr").first().waitFor();
  await page.locator("summary", { hasText: "Instance types" }).first().click();
  const fits = page.getByRole("table", { name: "Instance types of local" }).getByRole("row", { name: /^defaultinstancetype/ }).locator("td").last();
  await world.until("it is said how many fit", async () => /^\d+$/.test((await fits.textContent()) ?? ""));
  await open("/compute?target=local");
  await page.locator(".linked.here", { has: page.getByRole("heading", { name: "local", exact: true }) }).waitFor();
  await shoot(page, "use-by-team");
  world.cli("job", "cancel", "-n", "adas");
});

test("lists, environments and the door are readable for everyone, wide and narrow", async () => {
  world.make("environment", { name: "plain", version: "1", image: "python:3.12-slim" });
  const found = [];
  for (const [colorScheme, width] of [["light", 1280], ["dark", 820]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    for (const path of ["", "/models", "/data", "/components", "/environments", "/environments/plain", "/endpoints", "/endpoints/celsius", "/endpoints/celsius/test", "/endpoints/celsius/activity", "/endpoints/celsius/keys"]) {
      await open(path);
      await page.locator("main h1").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("[aria-busy='true']"));
      found.push(...(await axeFinds(page)).map((what) => `${colorScheme} ${path}: ${what}`));
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) found.push(`${width} px ${path}: wider than the window`);
    }
    const stranger = await browse({ colorScheme, viewport: { width, height: 900 } });
    await stranger.page.goto(`${world.url}/studio/default`);
    await stranger.page.getByText("You are not signed in").waitFor();
    found.push(...(await axeFinds(stranger.page)).map((what) => `${colorScheme} the door: ${what}`));
    await stranger.browser.close();
  }
  await open("/environments");
  await page.getByRole("link", { name: "plain" }).click();
  await sees("azureml:plain:1");
  assert.deepEqual(found, []);
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
