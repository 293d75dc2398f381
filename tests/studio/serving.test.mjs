// Endpoints in a real browser: models that answer are tried, watched, given shares of traffic, and opened by keys.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axeFinds, browse, HOSTILE, shoot, World } from "./world.mjs";

let world, tab, page;
const open = (path) => page.goto(`${world.url}/studio/default${path}`);

/** Answers with what it was sent and who it is; asked to fail, it does. */
const SCORE = `
import json, os
def init():
    print("loaded", flush=True)
def run(data):
    if "fail" in data:
        raise ValueError("as you wish")
    return {"by": os.environ["NAME"], "sent": json.loads(data), "html": os.environ["HOSTILE"]}
`;
// As the other tests of endpoints say it, so that it is built once.
const CONDA = "name: serving\ndependencies:\n- python=3.11\n- pip:\n  - azureml-inference-server-http\n";

function deploy(name, ...flags) {
  world.make("online-deployment", {
    name,
    endpoint_name: "iris",
    model: { path: join(world.home, "model.txt") },
    code_configuration: { code: world.code, scoring_script: "score.py" },
    environment: { image: "python:3.11-slim", conda_file: join(world.home, "conda.yml") },
    environment_variables: { NAME: name, HOSTILE },
    instance_type: "Standard_DS1_v2",
    instance_count: 1,
    readiness_probe: { initial_delay: 0, period: 1, timeout: 2, failure_threshold: 30, success_threshold: 1 },
  }, ...flags);
}

before(async () => {
  world = new World();
  world.shareBuilds();
  writeFileSync(join(world.code, "score.py"), SCORE);
  writeFileSync(join(world.home, "conda.yml"), CONDA);
  writeFileSync(join(world.home, "model.txt"), "weights");
  world.make("online-endpoint", { name: "iris", description: "flowers", auth_mode: "key" });
  deploy("blue", "--all-traffic");
  deploy("green");
  tab = await browse();
  page = tab.page;
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

test("an endpoint is found, with its deployments and their logs", async () => {
  await open("/endpoints");
  await page.getByRole("link", { name: "iris" }).click();
  await page.getByText("1 of 1 replicas are ready").nth(1).waitFor();
  await page.locator("summary", { hasText: "Log" }).first().click();
  await page.getByText("loaded").first().waitFor();
  await shoot(page, "endpoint");
});

test("a request is written as fields or as it is, and answered through the server", async () => {
  await open("/endpoints/iris/test");
  await page.getByLabel("data", { exact: true }).fill("[[5.1, 3.5]]");
  await page.getByLabel("Name of another field").fill("note");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByLabel("note", { exact: true }).fill("it's <b>mine</b>");
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.getByLabel("Answer", { exact: true });
  await answer.getByText('"by": "blue"').waitFor();
  assert.match(await answer.textContent(), /5\.1/);
  assert.ok((await answer.textContent()).includes("onerror"), "an answer is text");
  assert.match(await page.getByLabel("curl", { exact: true }).textContent(), /it'\\''s <b>mine<\/b>/);
  await page.getByLabel("Asked").selectOption("green");
  await page.getByRole("tab", { name: "JSON" }).click();
  await page.getByLabel("Body").fill('{"fail": true}');
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".badge.bad", { hasText: "502" }).waitFor();
  await page.locator("dt", { hasText: "Of the model" }).waitFor();
  await page.locator("dd", { hasText: "green" }).waitFor();
  assert.match(await page.getByLabel("Python", { exact: true }).textContent(), /"azureml-model-deployment": "green"/);
  await shoot(page, "endpoint-test");
  assert.equal(await page.title(), "iris · Endpoints · Peregrine");
});

test("what was answered is drawn, and replicas tell how they came", async () => {
  await open("/endpoints/iris/activity");
  const codes = page.getByRole("img", { name: /^Requests by status: 200 with \d+ points.*502/ });
  await codes.waitFor({ timeout: 20_000 });
  await page.getByRole("img", { name: /^Latency: p50/ }).locator("canvas").waitFor();
  await page.getByLabel("Scale events").getByText("green: ready").waitFor();
  await page.getByLabel("Scale events").getByText("blue: asked for").waitFor();
  await shoot(page, "endpoint-activity");
});

test("traffic moves in steps that add up, and keys are shown, copied and drawn anew", async () => {
  await open("/endpoints/iris");
  await page.getByLabel("Share of green").fill("20");
  assert.ok(await page.getByRole("button", { name: "Apply" }).isDisabled(), "120% is refused");
  await page.getByLabel("Share of blue").fill("80");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByRole("button", { name: "Apply" }).waitFor({ state: "detached" });
  assert.equal(world.cli("online-endpoint", "show", "-n", "iris", "--query", "traffic.green", "-o", "tsv").trim(), "20");
  await open("/endpoints/iris/keys");
  await page.getByRole("button", { name: "Show the keys" }).click();
  const keys = page.locator(".facts code");
  await keys.nth(1).waitFor();
  const [primary, secondary] = await keys.allTextContents();
  await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy the secondary key" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secondary);
  page.once("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Draw the primary key anew" }).click();
  await world.until("the primary key is another", async () => (await keys.first().textContent()) !== primary);
  assert.equal(await keys.nth(1).textContent(), secondary);
  await shoot(page, "endpoint-keys");
});

test("who may only look neither tries it nor sees its keys", async () => {
  const reader = JSON.parse(world.cli("principal", "create", "--name", "eve", "--role", "reader", "-o", "json"));
  const other = await browse();
  await other.page.goto(`${world.url}/studio/default/endpoints/iris/keys`);
  await other.page.getByLabel("Or sign in with a token").fill(reader.token);
  await other.page.getByRole("button", { name: "Sign in" }).click();
  await other.page.getByRole("link", { name: "Activity" }).waitFor();
  assert.equal(await other.page.getByRole("button", { name: "Show the keys" }).count(), 0);
  const path = `${world.names}/onlineEndpoints/iris`;
  for (const act of ["try", "listKeys", "regenerateKeys"]) {
    const answer = await other.context.request.post(`${world.url}${path}/${act}`, { headers: { "x-peregrine-studio": "1", origin: world.url }, data: {} });
    assert.equal(answer.status(), 403, act);
  }
  await other.browser.close();
});

test("its pages are readable for everyone", async () => {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const path of ["/endpoints", "/endpoints/iris", "/endpoints/iris/test", "/endpoints/iris/activity", "/endpoints/iris/keys"]) {
      await open(path);
      await page.locator("main h1").first().waitFor();
      await page.waitForFunction(() => !document.querySelector("[aria-busy='true']"));
      found.push(...(await axeFinds(page)).map((what) => `${colorScheme} ${path}: ${what}`));
    }
  }
  assert.deepEqual(found, []);
  assert.deepEqual(tab.faults, []);
  assert.deepEqual([...tab.origins], [world.url], "no request leaves the server's origin");
});
