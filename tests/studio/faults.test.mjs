// What goes wrong around a page that is open: nothing hangs, nothing is lost, nothing is injected.
import assert from "node:assert/strict";
import { appendFileSync, readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axeFinds, browse, HOSTILE, shoot, World, mlflow as called } from "./world.mjs";

let world, tab, page;
const made = {};
const open = (path, on = page) => on.goto(`${world.url}/studio/default${path}`);
const over = (name) => world.until(`${name} is over`, () => /Completed|Failed|Canceled/.test(world.status(name)), 60);
/** Right to left, wide, joined, beyond the first plane, and a mark that turns the order of letters around. */
const NAMES = ["обучение модели", "模型訓練 第三回", "مرحبا بالعالم", "שלום", "हिन्दी परीक्षण", "🦅🔥 été naïve", "a\u202egnp.exe"];

before(async () => {
  world = new World();
  made.named = NAMES.map((name) => world.job(name, "echo hi", { tags: { [name.replaceAll(/[\s.]/g, "_")]: name } }));
  made.logged = world.job("writes a log", "seq 20");
  made.live = world.train(0.05, 3, { pause: 0.1, steps: 5000, name: "long training" });
  for (const name of [...made.named, made.logged]) await over(name);
  tab = await browse();
  page = tab.page;
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

const mlflow = (path, body) => called(world, tab, path, body);

test("names in any alphabet are shown, found and linked to as they are", async () => {
  await open("/jobs");
  for (const name of NAMES) await page.getByRole("link", { name, exact: true }).waitFor();
  await shoot(page, "alphabets");
  await page.getByLabel("Filter", { exact: true }).fill(`attributes.run_name = '${NAMES[1]}'`);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: NAMES[0], exact: true }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: NAMES[1], exact: true }).click();
  await page.getByRole("heading", { name: NAMES[1] }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("шалом");
  await page.keyboard.press("Escape");
});

test("the charts of a run that logs miss nothing while the server is started again", async () => {
  await open(`/jobs/${made.live}/metrics`);
  const chart = page.getByRole("img", { name: /^loss: / });
  const points = async () => Number(/with (\d+) points/.exec((await chart.getAttribute("aria-label")) ?? "")?.[1] ?? 0);
  await world.until("a first point is drawn", async () => (await points()) > 5);
  const listen = new URL(world.url).host;
  world.cli("server", "stop");
  await page.getByText("The server does not answer").waitFor();
  world.start(listen);
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  const before = await points();
  await world.until("more points are drawn", async () => (await points()) > before + 20);
  // The chart has every step up to the last that it shows, those of the time between included.
  const known = await tab.context.request.get(`${world.url}${world.names}/jobs/${made.live}/metrics?key=loss&points=2500`, { headers: { authorization: `Bearer ${world.token()}` } });
  const { value } = await known.json();
  const drawn = await points();
  assert.ok(Math.abs(drawn - value[0].count) < 40, `${drawn} points are drawn of ${value[0].count}`);
  assert.ok(value[0].points.every(({ step }, index) => step === index), "no step is missing");
});

test("two tabs show the same, and a change in one is seen in the other", async () => {
  const second = await tab.context.newPage();
  await open(`/jobs/${made.live}`);
  await open(`/jobs/${made.live}/logs`, second);
  await second.getByRole("log").getByText(/step \d+: loss/).first().waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Cancel" }).click();
  await second.locator(".badge", { hasText: "Canceled" }).waitFor({ timeout: 30_000 });
  await second.getByText("the log is complete").waitFor();
  await page.locator(".badge", { hasText: "Canceled" }).waitFor();
  // Who leaves in one tab has left in all.
  await second.getByRole("button", { name: "Sign out" }).click();
  await second.getByText("You are not signed in").waitFor();
  await page.getByText("You are not signed in").waitFor({ timeout: 30_000 });
  await second.close();
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

test("a session ends with the token it was opened with, and says so", async () => {
  // Long enough to sign in with it, short enough to wait for.
  const days = 15 / 86_400;
  const short = JSON.parse(world.cli("principal", "create", "--name", "guest", "--role", "reader", "--expires-days", String(days), "-o", "json"));
  const other = await browse();
  await other.page.goto(`${world.url}/studio/default/jobs`);
  await other.page.getByLabel("Or sign in with a token").fill(short.token);
  await other.page.getByRole("button", { name: "Sign in" }).click();
  await other.page.getByRole("link", { name: NAMES[0], exact: true }).waitFor();
  await other.page.getByText("You are not signed in").waitFor({ timeout: 30_000 });
  await other.page.getByLabel("Or sign in with a token").fill(short.token);
  await other.page.getByRole("button", { name: "Sign in" }).click();
  await other.page.getByRole("alert").waitFor();
  assert.deepEqual(other.faults, []);
  await other.browser.close();
});

test("a run with 10,000 metrics opens, and each of them is found", async () => {
  const { experiment_id } = await mlflow("experiments/create", { name: "wide" });
  const { run } = await mlflow("runs/create", { experiment_id, run_name: "ten thousand", start_time: Date.now() });
  const { run_id } = run.info;
  for (let first = 0; first < 10_000; first += 1000) {
    const metrics = Array.from({ length: 1000 }, (_, n) => ({ key: `layer ${String(first + n).padStart(5, "0")}`, value: n, timestamp: 1, step: 0 }));
    await mlflow("runs/log-batch", { run_id, metrics });
  }
  const begin = Date.now();
  await open(`/jobs/${run_id}/metrics`);
  await page.getByRole("img", { name: /^layer 00000: / }).waitFor();
  assert.ok(Date.now() - begin < 15_000, `it took ${Date.now() - begin} ms`);
  await page.getByLabel("Find a metric").fill("layer 09987");
  await page.getByRole("img", { name: /^layer 09987: / }).waitFor();
  assert.ok((await page.locator(".plot").count()) < 100, "what is not in sight is not drawn");
  await open(`/jobs/${run_id}`);
  await page.getByText("and 9800 more").waitFor();
  await open("/jobs");
  await page.getByRole("link", { name: "ten thousand" }).waitFor();
  await page.getByText("Columns").click();
  await page.getByLabel("Find a column").fill("layer 09987");
  await page.getByLabel(/metrics.layer 09987/).waitFor();
});

test("a log of two gigabytes opens at its end", async () => {
  const found = readdirSync(world.home, { recursive: true }).find((path) => path.includes(made.logged) && path.endsWith("user_logs/std_log.txt"));
  const file = join(world.home, found);
  // Most of it is a hole, which reads as any file does.
  truncateSync(file, 2 * 2 ** 30);
  appendFileSync(file, `\n${Array.from({ length: 40_000 }, (_, n) => `line ${n} of the end ${HOSTILE}`).join("\n")}\n`);
  const begin = Date.now();
  await open(`/jobs/${made.logged}/logs`);
  const log = page.getByRole("log");
  await log.getByText("line 39999 of the end").waitFor();
  assert.ok(Date.now() - begin < 15_000, `it took ${Date.now() - begin} ms`);
  await page.getByLabel("Search the log").fill("line 39500 of");
  await page.getByText("1 lines").waitFor();
  await page.getByRole("button", { name: /^Show earlier \(2\.0 GiB above\)/ }).waitFor();
  assert.ok((await log.locator(".line").count()) < 200, "what is not in sight is not in the page");
  assert.notEqual(await page.title(), "owned");
  await shoot(page, "long-log");
});

test("on a slow line every page comes, and one that is cut is told of", async () => {
  const session = await tab.context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 400, downloadThroughput: 40_000, uploadThroughput: 20_000 });
  await open("/jobs", page);
  await page.getByRole("link", { name: "writes a log" }).waitFor({ timeout: 60_000 });
  await page.getByRole("link", { name: "writes a log" }).click();
  await page.getByText("It completed").waitFor({ timeout: 60_000 });
  await session.send("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
  await page.getByRole("link", { name: "Jobs", exact: true }).first().click();
  await page.getByText("The server does not answer").waitFor({ timeout: 30_000 });
  await session.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });
  await page.getByText("The server does not answer").waitFor({ state: "detached", timeout: 30_000 });
  await page.getByRole("link", { name: "writes a log" }).waitFor();
});

test("and none of it left a fault behind", async () => {
  assert.deepEqual(await axeFinds(page), []);
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
