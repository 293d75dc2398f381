// What bench/studio.py measures in the browser, the same way for both servers. Arguments: whose page it is, where it is,
// the run with long lines, and for ours how many pages to open at once and the server's process.
import { readFileSync } from "node:fs";

const { chromium } = await import(`${process.env.STUDIO_PACKAGES}/node_modules/playwright-core/index.mjs`);
const [whose, link, run, pages, pid] = process.argv.slice(2);
const base = new URL(link).origin;
const ROUNDS = 5;
// Without a GPU everything is drawn by the processor, and best without a detour over an emulated one.
const flags = ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=8"];
const PAGES = {
  ours: {
    runs: `${base}/studio/default/jobs`,
    row: ".rows .body a",
    scroller: ".rows .body",
    run: `${base}/studio/default/jobs/${run}`,
    tab: { role: "link", name: "Metrics", exact: true },
    chart: ".plot canvas",
  },
  mlflow: {
    runs: link,
    row: ".ag-row a[href*='/runs/']",
    scroller: ".ag-body-viewport",
    run: `${link.replace(/\/runs.*$/, "")}/runs/${run}`,
    tab: { role: "tab", name: "Model metrics" },
    chart: ".js-plotly-plot .scatterlayer .trace",
  },
}[whose];

const browser = await chromium.launch({ executablePath: process.env.STUDIO_CHROMIUM, args: flags });
const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 2600 } });
const page = await context.newPage();
const files = new Map();
page.on("response", (answer) => {
  if (answer.url().startsWith(`${base}/studio/assets/`)) files.set(answer.url(), Number(answer.headers()["content-length"] ?? 0));
});
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const several = async (measure, rounds = ROUNDS) => {
  const found = [];
  for (let round = 0; round < rounds; round++) found.push(await measure());
  return median(found);
};

/** Milliseconds from the wish to see a page to the moment its content is there. */
async function view(address, content, cold) {
  const tab = await context.newPage();
  if (cold) await (await context.newCDPSession(tab)).send("Network.clearBrowserCache");
  const begin = performance.now();
  await tab.goto(address, { waitUntil: "commit" });
  await tab.locator(content).first().waitFor({ timeout: 120_000 });
  const took = performance.now() - begin;
  await tab.close();
  return took;
}

/** Milliseconds from the press on a tab to the frame after its tenth chart is drawn, by the page's own clock. */
async function charts() {
  await page.goto(PAGES.run);
  const tab = page.getByRole(PAGES.tab.role, PAGES.tab);
  await tab.waitFor({ timeout: 60_000 });
  await page.evaluate((chart) => {
    globalThis.drawn = new Promise((done) => {
      const begin = () => {
        const begun = performance.now();
        const look = () => (document.querySelectorAll(chart).length < 10 ? requestAnimationFrame(look) : requestAnimationFrame(() => done(performance.now() - begun)));
        look();
      };
      document.addEventListener("pointerdown", begin, { capture: true, once: true });
    });
  }, PAGES.chart);
  await tab.click();
  return page.evaluate(() => globalThis.drawn);
}

/** The length of a frame that 95 of 100 do not exceed while a table is scrolled by 40 pixels a frame, to its end and back. */
async function frames() {
  await page.goto(PAGES.runs);
  await page.locator(PAGES.row).first().waitFor({ timeout: 120_000 });
  return page.locator(PAGES.scroller).first().evaluate(async (body) => {
    const lengths = [];
    let [last, step] = [performance.now(), 40];
    for (let frame = 0; frame < 300; frame++) {
      if (body.scrollTop + step < 0 || body.scrollTop + step > body.scrollHeight - body.clientHeight) step = -step;
      body.scrollTop += step;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      lengths.push(now - last);
      last = now;
    }
    return lengths.sort((a, b) => a - b)[Math.floor(lengths.length * 0.95)];
  });
}

/** The server's memory with one page open and with many, each of another person with the live table. */
async function memory() {
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  await page.goto(PAGES.runs);
  await page.locator(PAGES.row).first().waitFor();
  const found = { 1: resident() };
  const storageState = await context.storageState();
  for (let count = 2; count <= Number(pages); count++) {
    // As many people: one browser keeps few connections to a server, whatever its pages.
    const person = await browser.newContext({ ignoreHTTPSErrors: true, storageState, viewport: { width: 800, height: 600 } });
    const tab = await person.newPage();
    // A browser with this many pages gives up on one now and then; the page is asked for again.
    const visit = () => tab.goto(PAGES.runs, { waitUntil: "commit", timeout: 120_000 });
    await visit().catch(visit).catch(visit);
    await tab.locator(PAGES.row).first().waitFor({ timeout: 120_000 });
    if (count === Number(pages) || [10, 50].includes(count)) found[count] = resident();
  }
  return found;
}

await page.goto(link);
await page.locator(whose === "ours" ? "main h1" : PAGES.row).first().waitFor({ timeout: 120_000 });
const found = {
  first_ms: await several(() => view(PAGES.runs, PAGES.row, true)),
  charts_ms: await several(charts),
};
await page.setViewportSize({ width: 1280, height: 800 });
found.frame_ms = await several(frames, 3);
if (whose === "ours") {
  found.home_ms = await several(() => view(`${base}/studio/default`, ".card li a", false));
  found.bundle_bytes = [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
  found.memory_kib = await memory();
}
process.stdout.write(JSON.stringify(found));
await browser.close();
