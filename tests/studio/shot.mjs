// The pictures of the README and of the guide: real jobs that are compared, and the table they are chosen from.
import { writeFileSync } from "node:fs";
import { browse, World } from "./world.mjs";

const [compared, listed] = process.argv.slice(2);
const world = new World();
try {
  const rates = [0.02, 0.05, 0.1, 0.2, 0.35, 0.6];
  const names = rates.map((rate, index) => world.train(rate, 2 + (index % 4), { name: `resnet rate ${rate}` }));
  await world.until("all are over", () => names.every((name) => world.status(name) === "Completed"), 180);
  const { browser, page } = await browse({ viewport: { width: 1280, height: 860 } });
  await page.goto(world.link());
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(`${world.url}/studio/default/compare?runs=${names.join()}`);
  await page.getByRole("img", { name: /runs across/ }).waitFor();
  await page.locator(".plot canvas").nth(2).waitFor();
  await page.evaluate(() => document.fonts.ready);
  writeFileSync(compared, await page.screenshot());
  await page.setViewportSize({ width: 1280, height: 520 });
  const columns = encodeURIComponent(["params.rate", "params.depth", "metrics.loss", "metrics.accuracy"].join("\n"));
  await page.goto(`${world.url}/studio/default/jobs?columns=${columns}&order=${encodeURIComponent("metrics.`loss` ASC")}`);
  for (const name of ["0.6", "0.35", "0.2"]) await page.getByLabel(`Choose resnet rate ${name}`, { exact: true }).check();
  writeFileSync(listed, await page.screenshot());
  await browser.close();
} finally {
  world.end();
}
