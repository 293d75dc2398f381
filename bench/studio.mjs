// What bench/studio.py measures in the browser: its arguments are a link, a run with long lines, how many pages to open at
// once, and the server's process.
import { readFileSync } from "node:fs";

const { chromium } = await import(`${process.env.STUDIO_PACKAGES}/node_modules/playwright-core/index.mjs`);
const [link, run, pages, pid] = process.argv.slice(2);
const base = new URL(link).origin;
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
const browser = await chromium.launch({ executablePath: process.env.STUDIO_CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 2600 } });

const files = new Map();
const page = await context.newPage();
page.on("response", (answer) => {
  if (answer.url().startsWith(`${base}/studio/assets/`)) files.set(answer.url(), Number(answer.headers()["content-length"] ?? 0));
});
await page.goto(link);
await page.getByRole("heading", { name: "Home" }).waitFor();

/** Milliseconds from the wish to see a page to the moment its content is there. */
async function view(address, content, fresh) {
  const tab = fresh ?? (await context.newPage());
  const begin = performance.now();
  await tab.goto(address, { waitUntil: "commit" });
  await tab.locator(content).first().waitFor();
  const took = performance.now() - begin;
  if (!fresh) await tab.close();
  return took;
}
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const several = async (measure) => median([await measure(), await measure(), await measure()]);

const cold = async () => {
  const session = await context.newCDPSession(page);
  await session.send("Network.clearBrowserCache");
  return view(`${base}/studio/default/jobs`, ".rows .body a", page);
};
const first_ms = await several(cold);
const home_ms = await several(() => view(`${base}/studio/default`, ".card li a"));

await page.setViewportSize({ width: 1280, height: 800 });
const frame_ms = await page.locator(".rows .body").evaluate(async (body) => {
  const frames = [];
  let last = performance.now();
  for (let frame = 0; frame < 300; frame++) {
    body.scrollTop += 40;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames.sort((a, b) => a - b)[Math.floor(frames.length * 0.95)];
});

await page.setViewportSize({ width: 1280, height: 2600 });
const charts = async () => {
  await page.goto(`${base}/studio/default/jobs/${run}`);
  await page.getByRole("link", { name: "Metrics", exact: true }).waitFor();
  const begin = performance.now();
  await page.getByRole("link", { name: "Metrics", exact: true }).click();
  await page.locator(".plot canvas").nth(9).waitFor();
  return performance.now() - begin;
};
const charts_ms = await several(charts);

const one = memory();
const storageState = await context.storageState();
const open = [];
for (let count = 0; count < Number(pages); count++) {
  // As many people: one browser keeps few connections to a server, whatever its pages.
  const person = await browser.newContext({ ignoreHTTPSErrors: true, storageState, viewport: { width: 800, height: 600 } });
  const tab = await person.newPage();
  // A browser with this many pages gives up on one now and then; the page is asked for again.
  const visit = () => tab.goto(`${base}/studio/default/jobs/${run}/metrics`, { waitUntil: "commit", timeout: 120_000 });
  await visit().catch(visit).catch(visit);
  open.push(tab);
}
await Promise.all(open.map((tab) => tab.locator(".plot canvas").first().waitFor({ timeout: 300_000 })));
const bundle_bytes = [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
process.stdout.write(JSON.stringify({ first_ms, home_ms, frame_ms, charts_ms, bundle_bytes, memory_kib: [one, memory()] }));
await browser.close();
