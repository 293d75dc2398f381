// What keeps other pages, and users' own files, away from a session.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { browse, World } from "./world.mjs";

let world, tab, job, W;

before(async () => {
  world = new World();
  W = world.names;
  job = world.train(0.5, 2, { steps: 2 });
  await world.until("the job is over", () => world.status(job) === "Completed");
  tab = await browse();
  await tab.page.goto(world.link());
  await tab.page.getByRole("heading", { name: "Home" }).waitFor();
});

after(async () => {
  await tab?.browser.close();
  world?.end();
});

/** A request with the browser's cookies and with whatever headers a program can send. */
async function ask(method, path, headers = {}) {
  const answer = await tab.context.request.fetch(world.url + path, { method, headers, maxRedirects: 0 });
  return { status: answer.status(), headers: answer.headers(), text: await answer.text() };
}

test("the page runs nothing and loads nothing that is not from here", async () => {
  const { headers } = await ask("GET", "/studio/");
  const policy = headers["content-security-policy"];
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(part), `${part} in ${policy}`);
  }
  assert.ok(!/unsafe|\*|https?:/.test(policy), policy);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["referrer-policy"], "no-referrer");
  assert.equal((await ask("GET", "/")).headers["location"], "/studio/");
});

test("what is hashed is kept for ever, the page is not, and both are small", async () => {
  const page = await ask("GET", "/studio/");
  assert.equal(page.headers["cache-control"], "no-cache");
  const files = [...page.text.matchAll(/"(\/studio\/assets\/[^"]+)"/g)].map((match) => match[1]);
  assert.ok(files.length >= 2, page.text);
  let bytes = 0;
  for (const file of files) {
    const { headers } = await ask("GET", file, { "accept-encoding": "br" });
    assert.match(headers["cache-control"], /immutable/);
    bytes += Number(headers["content-length"]);
  }
  assert.ok(bytes < 200_000, `the first view takes ${bytes} bytes`);
  assert.equal((await ask("GET", "/studio/assets/none.js")).status, 404);
});

test("no answer beside the studio can act as a page of its origin", async () => {
  // The second is where MLflow's own page looks for a file.
  const file = `/mlflow/v2.0${W}/get-artifact?run_uuid=${job}&path=outputs/page.html`;
  for (const path of [`${W}/jobs/${job}/artifacts/outputs/page.html`, file, `${W}/jobs`, "/healthz"]) {
    const { status, headers } = await ask("GET", path);
    assert.equal(status, 200, path);
    assert.match(headers["content-security-policy"], /sandbox/, path);
    assert.equal(headers["x-content-type-options"], "nosniff", path);
  }
  const page = await tab.context.newPage();
  // Whether a browser shows it or saves it, nothing in it runs.
  await page.goto(world.url + file).catch(() => undefined);
  assert.notEqual(await page.title(), "owned");
  await page.close();
});

test("a change needs our page: its header, its origin, its site", async () => {
  const path = `${W}/jobs/${job}/cancel`;
  const origin = world.url;
  for (const [headers, status] of [
    [{}, 403],
    [{ "content-type": "text/plain", origin }, 403],
    [{ "x-peregrine-studio": "1", origin: "https://elsewhere.example" }, 403],
    [{ "x-peregrine-studio": "1", origin: "null" }, 403],
    [{ "x-peregrine-studio": "1", origin: origin.replace(/\d+$/, "1") }, 403],
    [{ "x-peregrine-studio": "1", origin, "sec-fetch-site": "same-site" }, 403],
    [{ "x-peregrine-studio": "1", origin, "sec-fetch-site": "same-origin" }, 200],
  ]) {
    assert.equal((await ask("POST", path, headers)).status, status, JSON.stringify(headers));
  }
  assert.equal((await ask("GET", `${W}/jobs`, { "sec-fetch-site": "cross-site" })).status, 403);
});

test("a page of another server on this machine can neither read nor change", async () => {
  const elsewhere = createServer((_, answer) => answer.end("<h1>elsewhere</h1>")).listen(0, "127.0.0.1");
  const page = await tab.context.newPage();
  await page.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const tried = await page.evaluate(
    async ([read, write]) => {
      const got = await fetch(read, { credentials: "include" }).then((answer) => answer.text(), () => "refused");
      const sent = await fetch(write, { method: "POST", credentials: "include", headers: { "x-peregrine-studio": "1" } }).then(() => "sent", () => "refused");
      return [got, sent];
    },
    [`${world.url}${W}/jobs`, `${world.url}${W}/jobs/${job}/cancel`],
  );
  assert.deepEqual(tried, ["refused", "refused"]);
  await page.close();
  elsewhere.close();
});

test("a link works once, and a session opens what its person may and nothing else", async () => {
  const link = world.link();
  const one = await browse();
  await one.page.goto(link);
  await one.page.getByRole("heading", { name: "Home" }).waitFor();
  await one.browser.close();
  const two = await browse();
  await two.page.goto(link);
  await two.page.getByText("You are not signed in").waitFor();
  const reader = JSON.parse(world.cli("principal", "create", "--name", "ada", "--role", "reader", "-o", "json"));
  await two.page.getByLabel("Or sign in with a token").fill(reader.token ?? `pgn.${reader.clientId ?? reader.client_id}.${reader.clientSecret ?? reader.client_secret}`);
  await two.page.getByRole("button", { name: "Sign in" }).click();
  await two.page.getByRole("heading", { name: "Home" }).waitFor();
  const mine = { "x-peregrine-studio": "1", origin: world.url };
  const answer = await two.context.request.fetch(`${world.url}${W}/jobs/${job}/cancel`, { method: "POST", headers: mine });
  assert.equal(answer.status(), 403);
  assert.match(await answer.text(), /is not contributor/);
  assert.equal((await two.context.request.fetch(`${world.url}/admin/v1/audit`)).status(), 403);
  await two.page.goto(`${world.url}/studio/default/jobs/${job}`);
  await two.page.getByText("It completed").waitFor();
  assert.equal(await two.page.getByRole("button", { name: "Run again…" }).count(), 0);
  world.cli("principal", "revoke", "--id", reader.clientId ?? reader.client_id);
  await two.page.getByText("You are not signed in").waitFor();
  await two.browser.close();
});
