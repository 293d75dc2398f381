// Each page's main story, in a real browser against a real server with real jobs.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axeFinds, browse, HOSTILE, shoot, World } from "./world.mjs";

let world, tab, page;
const made = {};
const open = (path) => page.goto(`${world.url}/studio/default${path}`);
const sees = (text, within = "main") => page.locator(within).getByText(text).first().waitFor({ timeout: 20_000 });

/** Every dialog of these pages, by where it opens. */
const DIALOGS = (job) => [
  [job, ["Run again…", "Register…"]],
  ["/models/classifier", ["Deploy…"]],
  ["/compute", ["Kubernetes…", "A machine over SSH…", "Slurm…", "A cluster of nodes…", "A pool of targets…"]],
  ["/workspace", ["New token…", "Give a role…", "New team…", "Set a quota…"]],
];

before(async () => {
  world = new World();
  made.trained = [world.train(0.05, 2), world.train(0.1, 3), world.train(0.3, 4), world.train(0.6, 5)];
  made.hostile = world.job(HOSTILE, "echo \"$HOSTILE\"", {
    inputs: { html: HOSTILE },
    tags: { 名前: HOSTILE },
    description: HOSTILE,
  });
  made.failed = world.job("broken loader", "echo reading; echo 'KeyError: label' >&2; exit 3");
  const ended = [...made.trained, made.hostile, made.failed];
  await world.until("the short jobs are over", () => ended.every((name) => /Completed|Failed/.test(world.status(name))), 120);
  made.live = world.train(0.05, 3, { pause: 0.2, steps: 15000, name: "long training" });
  made.other = world.job("holds a core", "sleep 3000");
  await world.until("both run", () => [made.live, made.other].every((name) => world.status(name) === "Running"));
  made.waiting = world.job("waits its turn", "echo hi", { resources: { instance_type: "defaultinstancetype", instance_count: 1 } });
  writeFileSync(join(world.home, "model.txt"), "weights");
  world.cli("model", "create", "-n", "classifier", "-v", "1", "--path", join(world.home, "model.txt"), "--type", "custom_model");
  tab = await browse();
  page = tab.page;
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

test("a link signs the browser in and leaves the address", async () => {
  await page.goto(world.link());
  await sees("Running (2)");
  assert.equal(page.url(), `${world.url}/studio/default`);
  const [cookie] = await tab.context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite, cookie.path], [true, true, "Strict", "/"]);
});

test("home shows what runs, what waits and why, and what failed", async () => {
  await open("");
  await sees("long training");
  await sees("waits its turn");
  await sees(/needs 1 CPU/);
  await sees("broken loader");
  await shoot(page, "home");
});

test("the table of jobs is filtered, sorted, given columns, and lives", async () => {
  await open("/jobs");
  await sees("resnet depth 5");
  await page.keyboard.press("/");
  await page.keyboard.type("params.depth = '4'");
  await page.keyboard.press("Enter");
  await page.getByText("resnet depth 5").waitFor({ state: "detached" });
  await sees("resnet depth 4");
  await page.getByLabel("Filter", { exact: true }).fill("metrics.loss <");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Filter", { exact: true }).fill("metr");
  await page.getByRole("option", { name: "metrics.loss" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("Columns").click();
  await page.getByLabel("metrics.loss").check();
  await page.getByLabel("params.rate").check();
  await page.getByText("Columns").click();
  await page.getByRole("button", { name: "loss" }).click();
  await page.waitForURL(/order=metrics/);
  const fresh = world.job("came while you looked", "echo hi");
  await page.getByRole("button", { name: "Started" }).click();
  await sees("came while you looked");
  await shoot(page, "jobs");
  await page.getByLabel("Choose came while you looked").check();
  await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
  await world.until("the new job is canceled", () => world.status(fresh) === "Canceled");
  await page.getByLabel("Choose came while you looked").check();
  await page.getByRole("toolbar").getByRole("button", { name: "Archive" }).click();
  await page.getByText("came while you looked").waitFor({ state: "detached" });
});

test("a job tells its story, and draws what it logs while it logs it", async () => {
  await open(`/jobs/${made.failed}`);
  await sees("It failed:");
  await open(`/jobs/${made.live}`);
  await sees("accepted for compute target");
  await page.getByText("CPU, % of the node").waitFor();
  await page.getByRole("link", { name: "Metrics", exact: true }).click();
  const chart = page.getByRole("img", { name: /^loss: / });
  const points = async () => Number(/with (\d+) points/.exec((await chart.getAttribute("aria-label")) ?? "")?.[1] ?? 0);
  await world.until("a first point is drawn", async () => (await points()) > 0);
  const first = await points();
  await world.until("more points are drawn", async () => (await points()) > first + 3);
  await chart.locator("canvas").waitFor();
  await page.getByLabel("log scale").check();
  await shoot(page, "metrics");
});

test("a log follows, is searched, and goes on when the server was away", async () => {
  await open(`/jobs/${made.live}/logs`);
  const log = page.getByRole("log");
  await log.getByText(/step \d+: loss/).first().waitFor({ state: "attached" });
  await page.getByLabel("Search the log").fill("step 1:");
  await page.getByLabel("only these").check();
  await world.until("one line is left", async () => (await log.locator(".line").count()) === 1);
  await page.getByLabel("only these").uncheck();
  await page.getByLabel("Search the log").fill("");
  const listen = new URL(world.url).host;
  world.cli("server", "stop");
  await page.getByText("The server does not answer").waitFor();
  world.start(listen);
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  const last = async () => Number(/step (\d+):/.exec((await log.locator(".line").last().textContent()) ?? "")?.[1] ?? -1);
  const before = await last();
  await page.getByLabel("follow").check();
  await world.until("the log goes on", async () => (await last()) > before + 2);
  const reached = await last();
  await page.getByLabel("Search the log").fill("step");
  const count = Number(/(\d+) lines/.exec((await page.getByRole("status").filter({ hasText: /lines/ }).textContent()) ?? "")?.[1]);
  assert.ok(count > reached, `every step is there: ${count} lines after step ${reached}`);
  await shoot(page, "logs");
});

test("files are looked into, and none of them is run", async () => {
  await open(`/jobs/${made.trained[0]}/files`);
  await page.getByRole("button", { name: "outputs/predictions.csv" }).click();
  await page.getByRole("cell", { name: "cat, or dog 2" }).first().waitFor();
  await page.getByRole("button", { name: "outputs/curve.svg" }).click();
  await page.getByRole("img", { name: "outputs/curve.svg" }).waitFor();
  await page.getByRole("button", { name: "outputs/page.html" }).click();
  await sees(HOSTILE);
  await shoot(page, "files");
  await page.getByRole("link", { name: "Definition", exact: true }).click();
  await sees("experimentName: vision");
});

test("what a job is called or was given is text, whatever it says", async () => {
  for (const path of ["", "/jobs", `/jobs/${made.hostile}`, `/jobs/${made.hostile}/logs`, `/jobs/${made.hostile}/definition`]) {
    await open(path);
    await page.getByText("onerror").first().waitFor();
    assert.notEqual(await page.title(), "owned");
  }
  assert.equal(await page.locator("main img[src='x']").count(), 0);
});

test("runs are compared: lines, axes and differences", async () => {
  await open("/jobs?q=params.optimizer%20%3D%20'adam'%20and%20attributes.status%20%3D%20'FINISHED'");
  for (const depth of [2, 3, 4, 5]) await page.getByLabel(`Choose resnet depth ${depth}`).check();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByRole("img", { name: /4 runs across/ }).waitFor();
  await page.getByRole("table", { name: "Differences" }).getByText("params.rate").waitFor();
  await page.getByRole("img", { name: /^loss: / }).locator("canvas").waitFor();
  await shoot(page, "compare");
});

test("a job runs again with changes", async () => {
  await open(`/jobs/${made.trained[0]}`);
  await page.getByRole("button", { name: "Run again…" }).click();
  await page.getByLabel("Display name").fill("once more");
  await page.getByLabel("Input rate").fill("0.7");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("heading", { name: "once more" }).waitFor();
  const name = decodeURIComponent(page.url().split("/").at(-1));
  assert.equal(world.cli("job", "show", "-n", name, "--query", "inputs.rate", "-o", "tsv").trim(), "0.7");
  await page.getByRole("button", { name: "Cancel" }).click();
  await world.until("it is canceled", () => world.status(name) === "Canceled");
});

test("models, compute and the workspace are shown", async () => {
  await open("/models");
  await page.getByRole("link", { name: "classifier" }).click();
  await sees("Version 1");
  await shoot(page, "model");
  await open("/compute");
  const waits = page.getByRole("table", { name: "Queue" }).getByRole("row", { name: /waits its turn/ });
  await waits.getByText(/needs 1 CPU/).waitFor();
  await waits.getByText(/probably about .* UTC|which has no time limit/).waitFor();
  await page.getByRole("table", { name: "Use in default" }).locator("tbody tr").first().waitFor();
  await shoot(page, "compute");
  await open("/workspace");
  await sees("workspaceblobstore");
  await page.getByRole("table", { name: "Audit" }).getByText("job_put").first().waitFor();
  for (const [path, word] of [["/data", "peregrine data create"], ["/components", "peregrine component create"], ["/endpoints", "peregrine online-endpoint create"]]) {
    await open(path);
    await sees(word);
  }
});

test("an owner gives tokens, roles, teams and quotas, and takes them away", async () => {
  await open("/workspace");
  await page.getByRole("button", { name: "New token…" }).click();
  await page.getByLabel("Whose").fill("ada");
  await page.getByRole("button", { name: "Make it" }).click();
  const token = await page.getByText(/^pgn\./).textContent();
  const me = async () => (await tab.context.request.fetch(`${world.url}${world.names}/jobs`, { headers: { authorization: `Bearer ${token}` } })).status();
  assert.equal(await me(), 200, "the token works");
  await shoot(page, "token");
  await page.getByRole("button", { name: "I have it" }).click();
  assert.ok(!(await page.content()).includes(token), "it is not shown again");
  const people = page.getByRole("table", { name: "People" });
  await people.getByRole("row", { name: /ada contributor/ }).waitFor();
  await page.getByRole("button", { name: "Change the role of ada" }).click();
  await page.getByRole("combobox", { name: "Role" }).selectOption("reader");
  await page.getByRole("button", { name: "Give it" }).click();
  await people.getByRole("row", { name: /ada reader/ }).waitFor();
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Remove ada" }).click();
  await people.getByRole("row", { name: /ada/ }).waitFor({ state: "detached" });
  assert.equal(await me(), 403);
  await page.getByRole("button", { name: "Give a role…" }).click();
  await page.getByRole("combobox", { name: "To" }).selectOption({ label: (await page.getByRole("option", { name: /^ada/ }).textContent()) ?? "" });
  await page.getByRole("button", { name: "Give it" }).click();
  await people.getByRole("row", { name: /ada contributor/ }).waitFor();
  const [asks, teams] = [page.getByRole("dialog"), page.getByRole("table", { name: "Teams" })];
  await page.getByRole("button", { name: "New team…" }).click();
  await asks.getByLabel("Name", { exact: true }).fill("vision");
  await asks.getByLabel("People").fill("zoe");
  await asks.getByRole("button", { name: "Make it" }).click();
  await asks.getByText(/nobody called/).waitFor();
  await asks.getByLabel("People").fill("ada\n");
  await asks.getByRole("button", { name: "Make it" }).click();
  await teams.getByRole("row", { name: /vision ada/ }).waitFor();
  assert.match(world.cli("workspace", "team", "-n", "default", "-o", "json"), /"vision"/);
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Remove team vision" }).click();
  await teams.waitFor({ state: "detached" });
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Revoke the token of ada" }).click();
  await page.getByRole("table", { name: "Tokens" }).getByRole("row", { name: /ada revoked/ }).waitFor();
  assert.equal(await me(), 401);
  await page.getByRole("button", { name: "Set a quota…" }).click();
  await page.getByRole("button", { name: "Set it" }).click();
  await page.getByRole("dialog").getByText("say how much of something").waitFor();
  await page.getByLabel("Jobs at a time").fill("50");
  await page.getByRole("button", { name: "Set it" }).click();
  const quotas = page.getByRole("table", { name: "Quotas" });
  await quotas.getByRole("row", { name: /everyone, each all targets 50 jobs/ }).waitFor();
  assert.match(world.cli("workspace", "quota", "-n", "default", "-o", "json"), /"jobs": 50/);
  await page.getByRole("table", { name: "Audit" }).getByText("quota_put").first().waitFor();
  await shoot(page, "workspace");
  await quotas.getByRole("button", { name: /^Clear the quota of everyone/ }).click();
  await quotas.waitFor({ state: "detached" });
});

test("the keyboard leads anywhere", async () => {
  await open("");
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("long trai");
  await page.getByRole("option", { name: /long training/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "long training" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

test("every page is readable for everyone, light and dark, wide and narrow", async () => {
  const found = [];
  const job = `/jobs/${made.trained[1]}`;
  for (const [colorScheme, width] of [["light", 1280], ["dark", 820]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    for (const path of ["", "/jobs", job, `${job}/metrics`, `${job}/logs`, `${job}/files`, `/compare?runs=${made.trained.join()}`, "/models/classifier", "/compute", "/workspace"]) {
      await open(path);
      await page.locator("main h1").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("[aria-busy='true']"));
      found.push(...(await axeFinds(page)).map((what) => `${colorScheme} ${path}: ${what}`));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (wide) found.push(`${width} px ${path}: wider than the window`);
      if (colorScheme === "dark") await shoot(page, `dark${path.replaceAll(/[/?=,]/g, "-").slice(0, 40)}`);
    }
    for (const [path, buttons] of DIALOGS(job)) {
      await open(path);
      for (const name of buttons) {
        await page.getByRole("button", { name, exact: true }).click();
        await page.getByRole("dialog").waitFor();
        found.push(...(await axeFinds(page)).map((what) => `${colorScheme} ${path} ${name}: ${what}`));
        await page.getByRole("button", { name: "Leave it" }).click();
        await page.getByRole("dialog").waitFor({ state: "detached" });
      }
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    found.push(...(await axeFinds(page)).map((what) => `${colorScheme} palette: ${what}`));
    await page.keyboard.press("Escape");
  }
  assert.deepEqual(found, []);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("whoever leaves is out, and nothing went wrong on the way", async () => {
  await open("");
  const [{ name, value }] = await tab.context.cookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are not signed in").waitFor();
  assert.deepEqual(await tab.context.cookies(), []);
  await tab.context.addCookies([{ name, value, url: world.url, httpOnly: true, secure: true, sameSite: "Strict" }]);
  await page.reload();
  await page.getByText("You are not signed in").waitFor();
  const listen = new URL(world.url).host;
  world.cli("server", "stop");
  world.start(listen);
  await page.reload();
  await page.getByText("You are not signed in").waitFor();
  await page.getByLabel("Or sign in with a token").fill(world.token());
  await page.getByRole("button", { name: "Sign in" }).click();
  await sees("Running (2)");
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
