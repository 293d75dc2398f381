// The page of a job, closely: charts, logs, files, steps, and what it does when the server does not answer as it should.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { axeFinds, browse, HOSTILE, shoot, World, mlflow as called } from "./world.mjs";

let world, tab, page;
const made = {};
const open = (path, on = page) => on.goto(`${world.url}/studio/default${path}`);
const over = (name) => world.until(`${name} is over`, () => /Completed|Failed|Canceled/.test(world.status(name)), 120);
const chart = (name, on = page) => on.getByRole("img", { name: new RegExp(`^${name}: `) });

/** A red dot. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mP8z8BQz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";
const NOTEBOOK = {
  cells: [
    { cell_type: "markdown", source: ["# What was found\n", "\n", "It is **red**, see `dot`.\n", "\n", "- one\n", "- two ", HOSTILE] },
    { cell_type: "code", source: "draw()", outputs: [{ data: { "image/png": PNG, "text/plain": "<Figure>" } }, { text: ["drawn\n"] }] },
    { cell_type: "code", source: "fail()", outputs: [{ traceback: ["\u001b[31mValueError\u001b[0m: no"] }] },
  ],
};

before(async () => {
  world = new World();
  writeFileSync(join(world.code, "notebook.ipynb"), JSON.stringify(NOTEBOOK));
  writeFileSync(join(world.code, "dot.png"), Buffer.from(PNG, "base64"));
  made.files = world.job("leaves files", "mkdir -p outputs; cp notebook.ipynb dot.png outputs; echo from the first attempt");
  made.ranks = world.job("two ranks", "echo I am rank $RANK", { distribution: { type: "pytorch", process_count_per_instance: 2 } });
  made.long = world.job("a long log", "echo the very first line; seq 400000; echo the very last line");
  tab = await browse();
  page = tab.page;
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
  for (const name of [made.files, made.ranks, made.long]) await over(name);
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

const mlflow = (path, body) => called(world, tab, path, body);

/** A run that some program logs to; it goes on until it is told to end. */
async function run(run_name) {
  const { run } = await mlflow("runs/create", { experiment_id: "0", run_name, start_time: Date.now() });
  return run.info.run_id;
}

/** Points of a metric, one a second since some hour. */
async function log(run_id, key, from, to) {
  const begin = 1_700_000_000_000;
  for (let first = from; first < to; first += 1000) {
    const steps = Array.from({ length: Math.min(1000, to - first) }, (_, n) => first + n);
    await mlflow("runs/log-batch", { run_id, metrics: steps.map((step) => ({ key, value: Math.sin(step / 50) + 2, timestamp: begin + step * 1000, step })) });
  }
}

/** The stretch that a chart shows. */
async function shown(name, on = page) {
  const text = (await chart(name, on).getAttribute("data-shown")) ?? "";
  return text.split(" ").map(Number);
}

/** Waits until a chart shows a stretch that fits. */
const shows = (name, what, fits) => world.until(`${name} ${what}`, async () => fits(...(await shown(name))), 20);

test("every chart shows all it has, however far the others go, until the reader zooms", async () => {
  made.run = await run("of two lengths");
  await log(made.run, "accuracy", 3, 4);
  await log(made.run, "loss", 0, 10_000);
  await open(`/jobs/${made.run}/metrics`);
  await shows("loss", "shows all its steps", (min, max) => min <= 0 && max >= 9999);
  await shows("accuracy", "shows its one step and not those of another", (min, max) => min <= 3 && max >= 3 && max < 5000);
  await log(made.run, "loss", 10_000, 11_000);
  await shows("loss", "goes on to show all while more comes", (min, max) => min <= 0 && max >= 10_999);
  const area = await chart("loss").locator(".u-over").boundingBox();
  const at = (share) => [area.x + area.width * share, area.y + area.height / 2];
  await page.mouse.move(...at(0.25));
  await page.mouse.down();
  await page.mouse.move(...at(0.4), { steps: 4 });
  await page.mouse.move(...at(0.5), { steps: 4 });
  await page.mouse.up();
  for (const name of ["loss", "accuracy"]) await shows(name, "is zoomed", (min, max) => min > 2000 && min < 3500 && max > 5000 && max < 6000);
  await shoot(page, "zoomed");
  await log(made.run, "loss", 11_000, 11_500);
  const last = (Math.sin(11_499 / 50) + 2).toPrecision(5);
  await world.until("what was logged is there", async () => ((await chart("loss").getAttribute("aria-label")) ?? "").endsWith(`last ${last}`));
  assert.ok((await shown("loss"))[1] < 6000, "what comes does not end the zoom");
  await chart("loss").locator(".u-over").dblclick();
  await shows("loss", "shows all again", (min, max) => min <= 0 && max >= 11_499);
  await shows("accuracy", "shows its one step again", (min, max) => min <= 3 && max >= 3 && max < 5000);
});

test("a line is drawn over steps, over time and since its start, smoothed or as logged", async () => {
  await open(`/jobs/${made.run}/metrics`);
  await shows("loss", "shows its steps", (min, max) => min <= 0 && max >= 11_499);
  await page.getByLabel("Over").selectOption("time");
  await shows("loss", "is drawn over the clock", (min, max) => min <= 1_700_000_000 && max >= 1_700_011_499);
  await page.getByLabel("Over").selectOption("relative");
  await shows("loss", "is drawn over seconds", (min, max) => min <= 0 && max >= 11_499 && max < 20_000);
  await page.getByLabel("Over").selectOption("step");
  const picture = () => chart("loss").locator("canvas").evaluate((canvas) => canvas.toDataURL());
  await shows("loss", "shows its steps", (min, max) => min <= 0 && max >= 11_499);
  const before = await picture();
  await page.getByLabel("Smoothing").fill("0.98");
  await world.until("the line is another", async () => (await picture()) !== before);
  await shoot(page, "smoothed");
});

test("two metrics are drawn in one chart, and the address keeps it", async () => {
  await open(`/jobs/${made.run}/metrics`);
  await page.getByLabel("Draw loss together with others").check();
  await page.getByLabel("Draw accuracy together with others").check();
  await chart("loss, accuracy").locator("canvas").waitFor();
  await page.reload();
  await chart("loss, accuracy").locator("canvas").waitFor();
  await page.getByLabel("Draw loss together with others").uncheck();
  await chart("loss, accuracy").waitFor({ state: "detached" });
});

test("a page that watches more points than it can hold keeps the shape of the line", async () => {
  const fast = await run("logs much");
  await log(fast, "loss", 0, 1000);
  await open(`/jobs/${fast}/metrics`);
  await chart("loss").locator("canvas").waitFor();
  await log(fast, "loss", 1000, 140_000);
  await shows("loss", "reaches the last step", (_, max) => max >= 139_999);
  const count = Number(/with (\d+) points/.exec((await chart("loss").getAttribute("aria-label")) ?? "")?.[1]);
  assert.ok(count <= 4000 && count > 500, `${count} points are held`);
});

test("a stream of metrics that was refused is asked for again, and the page says so", async () => {
  let refused = 0;
  await page.route(/metrics\/stream/, (route) => (refused++ < 2 ? route.fulfill({ status: 503, body: "busy" }) : route.fallback()));
  await open(`/jobs/${made.run}/metrics`);
  await page.getByText("not live: the server does not send what is logged").waitFor();
  await chart("loss").locator("canvas").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  await page.unroute(/metrics\/stream/);
});

test("runs are compared over the clock and smoothed, with one request for all of them", async () => {
  const other = await run("another");
  await log(other, "loss", 0, 500);
  const asked = [];
  page.on("request", (request) => /\/metrics\?/.test(request.url()) && asked.push(request.url()));
  await open(`/compare?runs=${made.run},${other}`);
  await chart("loss").locator("canvas").waitFor();
  assert.ok(asked.length > 0 && new Set(asked).size === 1, asked.join("\n"));
  await page.getByLabel("Over").selectOption("time");
  await shows("loss", "is drawn over the clock", (min, max) => min <= 1_700_000_000 && max >= 1_700_011_499);
  await page.getByLabel("Smoothing").fill("0.9");
  await page.getByText("another (as logged)").first().waitFor();
  await shoot(page, "compare-smoothed");
});

test("a log has a tab for every rank and attempt, and the newest attempt is the first", async () => {
  await open(`/jobs/${made.ranks}/logs`);
  const tabs = page.getByRole("tablist", { name: "Log files" });
  await page.getByRole("log").getByText("I am rank 0").waitFor();
  await tabs.getByRole("tab", { name: "std_log_process_1" }).click();
  await page.getByRole("log").getByText("I am rank 1").waitFor();
  const first = readdirSync(world.home, { recursive: true }).find((path) => path.includes(made.files) && path.endsWith("user_logs/std_log.txt"));
  for (const attempt of ["001", "002", "010"]) {
    const file = join(world.home, dirname(dirname(first)), `retry-${attempt}/user_logs/std_log.txt`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `from attempt ${attempt}\n`);
  }
  await open(`/jobs/${made.files}/logs`);
  await page.getByRole("log").getByText("from attempt 010").waitFor();
  assert.deepEqual((await tabs.getByRole("tab").allTextContents()).slice(0, 4), ["retry-010/std_log", "retry-002/std_log", "retry-001/std_log", "std_log"]);
  await tabs.getByRole("tab", { name: "std_log", exact: true }).click();
  await page.getByRole("log").getByText("from the first attempt").waitFor();
});

test("what stands earlier in a long log is put before what is there, and what is too much goes at the other end", async () => {
  const asked = [];
  const note = (request) => /std_log\.txt/.test(request.url()) && asked.push(Number(new URL(request.url()).searchParams.get("offset")));
  page.on("request", note);
  await open(`/jobs/${made.long}/logs`);
  const log = page.getByRole("log");
  await log.getByText("the very last line").waitFor();
  await page.getByText("the log is complete").waitFor();
  const [start] = asked;
  assert.ok(start > 1 << 20, `the tail begins at ${start}`);
  asked.length = 0;
  await page.getByRole("button", { name: /^Show earlier/ }).click();
  await page.getByRole("button", { name: /^Show earlier/ }).waitFor({ state: "detached" });
  assert.ok(asked.length > 0 && asked.every((offset) => offset < start + (1 << 17)), `what is there is not asked for again: ${asked}`);
  await page.getByLabel("Search the log").fill("the very first line");
  await page.getByText("1 lines").waitFor();
  await page.getByText("the end is not shown").waitFor();
  await page.getByLabel("Search the log").fill("");
  await page.getByRole("button", { name: "To the end" }).click();
  await log.getByText("the very last line").waitFor();
  page.off("request", note);
});

test("a log goes on after an answer that was refused or cut, and says that it is not live", async () => {
  const live = world.train(0.05, 3, { pause: 0.2, steps: 15_000, name: "long training" });
  await world.until("it writes", () => world.status(live) === "Running");
  made.live = live;
  const other = await tab.context.newPage();
  // The body of the second answer ends too early.
  await other.addInitScript(() => {
    const whole = Response.prototype.arrayBuffer;
    let count = 0;
    Response.prototype.arrayBuffer = function () {
      return count++ === 1 ? Promise.reject(new TypeError("network error")) : whole.call(this);
    };
  });
  let answers = 0;
  await other.route(/artifacts\/user_logs/, (route) => (++answers === 4 ? route.fulfill({ status: 429, json: { error: { code: "TooMany", message: "too many requests" } } }) : route.fallback()));
  await open(`/jobs/${live}/logs`, other);
  await other.getByText("not live: the answer was cut off; trying again").waitFor();
  await other.getByText("not live: too many requests; trying again").waitFor();
  await other.getByText("live", { exact: true }).waitFor();
  const last = async () => Number(/step (\d+):/.exec((await other.getByRole("log").locator(".line").last().textContent()) ?? "")?.[1] ?? -1);
  const before = await last();
  await world.until("the log goes on", async () => (await last()) > before + 2);
  await other.getByLabel("Search the log").fill("step");
  const count = Number(/(\d+) lines/.exec((await other.getByRole("status").filter({ hasText: /lines/ }).textContent()) ?? "")?.[1]);
  assert.ok(count > before, `no step is missing: ${count} lines after step ${before}`);
  await other.close();
});

test("a session that is renewed loads nothing anew", async () => {
  // A clock is the whole browser's.
  const { browser, page: other } = await browse();
  await other.goto(world.link());
  await other.getByRole("heading", { name: "Home" }).waitFor();
  await other.clock.install();
  await open(`/jobs/${made.live}/logs`, other);
  await other.getByRole("log").getByText(/step \d+: loss/).first().waitFor({ state: "attached" });
  const [offsets, renewed] = [[], []];
  other.on("request", (request) => {
    const url = new URL(request.url());
    if (/user_logs/.test(url.pathname)) offsets.push(Number(url.searchParams.get("offset")));
    if (/studio\/session/.test(url.pathname)) renewed.push(url.pathname);
  });
  await other.clock.fastForward("11:00");
  await world.until("the session is renewed", () => renewed.length > 0);
  const asked = offsets.length;
  await world.until("the log goes on", () => offsets.length > asked + 2);
  assert.ok(offsets.every((offset) => offset > 0), `the log is not read from its beginning: ${offsets}`);
  await browser.close();
});

test("a page that was open across an upgrade loads itself anew, once", async () => {
  const gone = { status: 404, body: "gone" };
  await open("");
  await page.getByRole("heading", { name: "Home" }).waitFor();
  // What this page would fetch is there again for the next one.
  let loads = 0;
  const count = (request) => request.isNavigationRequest() && loads++;
  page.on("request", count);
  await page.route(/assets\/job-.*\.js/, (route) => (loads === 0 ? route.fulfill(gone) : route.fallback()));
  await page.evaluate((name) => {
    history.pushState(null, "", `/studio/default/jobs/${name}`);
    window.dispatchEvent(new Event("popstate"));
  }, made.files);
  await page.getByRole("heading", { name: "leaves files" }).waitFor();
  assert.equal(loads, 1);
  await page.unroute(/assets\/job-/);
  await page.route(/assets\/compare-.*\.js/, (route) => route.fulfill(gone));
  await open(`/compare?runs=${made.run}`);
  await page.getByText("This page cannot be shown").waitFor();
  await page.getByRole("button", { name: "Load it again" }).waitFor();
  assert.equal(loads, 2, "so soon after the first it is not loaded a second time");
  page.off("request", count);
  assert.deepEqual(await axeFinds(page), []);
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.getByRole("link", { name: "leaves files" }).waitFor();
  await page.unroute(/assets\/compare-/);
});

test("an address or a kept view that makes no sense leaves a page to go on from", async () => {
  await open("/jobs/100%");
  await page.getByRole("alert").getByText(/100%/).waitFor();
  await page.getByRole("link", { name: "Home", exact: true }).waitFor();
  await page.evaluate(() => localStorage.setItem("views", "{broken"));
  await open("/jobs");
  await page.getByRole("link", { name: "Models", exact: true }).click();
  await page.getByRole("heading", { name: "Models" }).waitFor();
  await page.evaluate(() => localStorage.clear());
});

test("each part of a job has lines of its own, its GPUs too", async () => {
  const at = Date.now();
  const one = (part, n, cpu_percent) => ({ part, at: at + n * 1000, cpu_percent, memory_used_bytes: 1 << 20, memory_total_bytes: 1 << 30, gpus: [{ index: 0, utilization_percent: 7, memory_used_bytes: 3 << 20, memory_total_bytes: 1 << 30 }] });
  let asked = 0;
  // The first answer is refused; a job that is over is asked again all the same.
  await page.route(/\/samples/, (route) => (asked++ === 0 ? route.fulfill({ status: 503, body: "busy" }) : route.fulfill({ json: { value: [one(0, 0, 10), one(0, 1, 11), one(0, 2, 12), one(1, 0, 80), one(1, 1, 81)] } })));
  await open(`/jobs/${made.ranks}`);
  await page.getByRole("img", { name: "CPU, % of the node: part 0: CPU with 3 points, last 12; part 1: CPU with 2 points, last 81" }).waitFor();
  await page.getByRole("img", { name: /^Memory of the GPU, of 1\.0 GiB: part 0: GPU 0 with 3 points, last 3145728; part 1/ }).waitFor();
  await shoot(page, "parts");
  await page.unroute(/\/samples/);
});

test("a notebook is read with its words and pictures, and runs nothing", async () => {
  await open(`/jobs/${made.files}/files`);
  await page.getByRole("button", { name: "outputs/notebook.ipynb" }).click();
  await page.getByRole("heading", { name: "What was found" }).waitFor();
  await page.locator(".notebook strong", { hasText: "red" }).waitFor();
  const drawn = async (name) => page.getByRole("img", { name }).evaluate((image) => image.complete && image.naturalWidth === 10);
  await world.until("the picture is drawn", () => drawn("Output 1 of cell 2"));
  await page.getByText("ValueError: no").waitFor();
  await page.locator(".notebook li", { hasText: "onerror" }).waitFor();
  assert.equal(await page.locator(".notebook script, .notebook img[src='x']").count(), 0);
  assert.notEqual(await page.title(), "owned");
  await shoot(page, "notebook");
  await page.getByRole("button", { name: "outputs/dot.png" }).click();
  await world.until("the file is drawn", () => drawn("outputs/dot.png"));
});

test("a job runs again with another input, environment and size", async () => {
  writeFileSync(join(world.home, "words.txt"), "hello\n");
  for (const version of ["1", "2"]) world.cli("data", "create", "-n", "words", "-v", version, "--path", join(world.home, "words.txt"), "--type", "uri_file");
  const reader = world.job("reads words", "cat ${{inputs.words}}; echo $WHO", { inputs: { words: { type: "uri_file", path: "azureml:words:1" } }, environment_variables: { WHO: "ada" } });
  await over(reader);
  await open(`/jobs/${reader}`);
  await page.getByRole("button", { name: "Run again…" }).click();
  await page.getByLabel("Display name").fill("reads others");
  await page.getByLabel("Experiment").fill("second");
  await page.getByLabel("Input words").fill("azureml:words:2");
  await page.getByLabel("Environment variables").fill("WHO=grace\nMORE=a=b");
  await page.getByLabel("Compute target").fill("local");
  await page.getByLabel("Instance type").fill("defaultinstancetype");
  await shoot(page, "again");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("heading", { name: "reads others" }).waitFor();
  const name = decodeURIComponent(page.url().split("/").at(-1));
  await over(name);
  const known = JSON.parse(world.cli("job", "show", "-n", name, "-o", "json"));
  assert.deepEqual(known.environment_variables, { WHO: "grace", MORE: "a=b" });
  assert.match(known.inputs.words.path, /words[:/].*2$/);
  assert.equal(known.resources.instance_type, "defaultinstancetype");
  assert.equal(known.experiment_name, "second");
  assert.equal(known.status, "Completed");
});

test("a step says why it was run, and after running again what it was taken from", async () => {
  const step = { type: "command", command: "echo hi > ${{outputs.out}}/hi.txt", environment: { image: "python:3.12-slim" }, outputs: { out: { type: "uri_folder" } } };
  const first = world.make("job", { type: "pipeline", display_name: "one step", experiment_name: "steps", settings: { default_compute: "azureml:local" }, jobs: { greet: step } });
  await over(first);
  await open(`/jobs/${first}/children`);
  const steps = page.getByRole("table", { name: "Steps" });
  await steps.getByText("no: no earlier job of this step is on record").waitFor();
  await page.getByRole("button", { name: "Run again…" }).click();
  await page.getByLabel("Display name").fill("one step, once more");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("heading", { name: "one step, once more" }).waitFor();
  const second = decodeURIComponent(page.url().split("/").at(-1));
  await over(second);
  await open(`/jobs/${second}/children`);
  await steps.getByText("from").waitFor();
  await page.getByRole("img", { name: "Graph of 1 steps" }).getByText(/^reused from/).waitFor();
  await shoot(page, "reused");
});

test("a sweep is submitted once more, under another name", async () => {
  const first = world.make("job", {
    type: "sweep",
    display_name: "rates",
    trial: { command: "python3 train.py ${{search_space.rate}} 2 0 3", code: world.code, environment: { image: "python:3.12-slim" }, environment_variables: { HOSTILE: "x" } },
    compute: "azureml:local",
    sampling_algorithm: "random",
    search_space: { rate: { type: "choice", values: [0.1] } },
    objective: { goal: "minimize", primary_metric: "loss" },
    limits: { max_total_trials: 1, max_concurrent_trials: 1 },
  });
  await over(first);
  await open(`/jobs/${first}`);
  await page.getByRole("button", { name: "Run again…" }).click();
  await page.getByLabel("Display name").fill("rates again");
  await page.getByLabel("Experiment").fill("another search");
  assert.equal(await page.getByLabel("Command").count(), 0, "what a trial runs stays");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("heading", { name: "rates again" }).waitFor();
  const second = decodeURIComponent(page.url().split("/").at(-1));
  await over(second);
  assert.equal(world.status(second), "Completed");
  await open(`/jobs/${second}/children`);
  await page.getByText("Trials (1), the best first").waitFor();
});

test("a job that is created with --web says where it is seen", async () => {
  const file = join(world.home, "web.yml");
  writeFileSync(file, JSON.stringify({ type: "command", display_name: "seen at once", command: "echo hi", environment: { image: "python:3.12-slim" } }));
  const env = { ...process.env, PEREGRINE_HOME: world.home };
  const { stderr, status } = spawnSync(process.env.PEREGRINE_BIN, ["job", "create", "-f", file, "--web"], { env, encoding: "utf8", timeout: 60_000 });
  assert.equal(status, 0, stderr);
  const link = /see it at (\S+)/.exec(stderr)?.[1];
  assert.ok(link?.startsWith(`${world.url}/studio/default/jobs/`), stderr);
  const other = await browse();
  await other.page.goto(link);
  await other.page.getByRole("heading", { name: "seen at once" }).waitFor();
  assert.ok(!other.page.url().includes("enter="));
  assert.deepEqual(other.faults, []);
  await other.browser.close();
});

test("a link of someone else asks before it signs them in here", async () => {
  const ada = JSON.parse(world.cli("principal", "create", "--name", "ada", "--role", "contributor", "-o", "json"));
  const link = async () => {
    const answer = await tab.context.request.post(`${world.url}/admin/v1/studio/links`, { headers: { authorization: `Bearer ${ada.token}` }, data: {} });
    return (await answer.json()).url;
  };
  const name = () => page.locator("nav footer span").textContent();
  await open("");
  await page.getByRole("heading", { name: "Home" }).waitFor();
  const own = await name();
  // A link that differs from the page behind `#` alone does not load it.
  await page.goto("about:blank");
  await page.goto(await link());
  await page.getByRole("heading", { name: "Whose link is this?" }).waitFor();
  assert.deepEqual(await axeFinds(page), []);
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
  assert.equal(await name(), own);
  await page.goto("about:blank");
  await page.goto(await link());
  await page.getByRole("button", { name: "Sign in with the link" }).click();
  await page.getByRole("heading", { name: "Home" }).waitFor();
  assert.equal(await name(), "ada");
});

test("and none of it left a fault behind", async () => {
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
