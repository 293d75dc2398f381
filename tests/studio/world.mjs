// A real server with real jobs, and a real browser in front of it.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

// The packages lie in a cache, not beside this file.
const packages = process.env.STUDIO_PACKAGES;
const { chromium } = await import(`${packages}/node_modules/playwright-core/index.mjs`);
const axe = readFileSync(`${packages}/node_modules/axe-core/axe.min.js`, "utf8");
const binary = process.env.PEREGRINE_BIN;
const shots = process.env.STUDIO_SHOTS ?? join(tmpdir(), "studio-shots");

export const HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

const TRAIN = `
import json, math, os, pathlib, random, ssl, sys, time, urllib.request
rate, depth, pause = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
base, run = os.environ["MLFLOW_TRACKING_URI"], os.environ["MLFLOW_RUN_ID"]
trust = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
head = {"authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "content-type": "application/json"}
def log(metrics, params=()):
    body = json.dumps({"run_id": run, "metrics": metrics, "params": list(params)}).encode()
    for _ in range(100):
        try:
            return urllib.request.urlopen(urllib.request.Request(base + "/api/2.0/mlflow/runs/log-batch", body, head), context=trust).read()
        except OSError:
            time.sleep(0.2)
random.seed(depth)
log([], [{"key": "optimizer", "value": "adam"}])
for step in range(int(sys.argv[4])):
    now = int(time.time() * 1000)
    loss = math.exp(-step * rate) + depth * 0.01 + random.random() * 0.04
    values = {"loss": loss, "accuracy": 1 - loss / 1.4, "rate": rate * 0.97 ** step}
    log([{"key": key, "value": value, "timestamp": now, "step": step} for key, value in values.items()])
    print(f"step {step}: loss {loss:.4f}", flush=True)
    time.sleep(pause)
out = pathlib.Path("outputs")
out.mkdir(exist_ok=True)
(out / "report.json").write_text(json.dumps({"rate": rate, "loss": loss}))
(out / "predictions.csv").write_text("id,label,score\\n" + "\\n".join(f'{i},"cat, or dog {i % 3}",0.{i}' for i in range(40)))
(out / "page.html").write_text(os.environ["HOSTILE"])
(out / "curve.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' width='300' height='120' onload='document.title=1'><circle cx='60' cy='60' r='50' fill='#2f7ed8'/></svg>")
`;

/** A server in a home of its own, and everything that names that home gone at the end. */
export class World {
  /** What stands before a resource's path. */
  names =
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default";

  constructor() {
    this.home = mkdtempSync(join(tmpdir(), "studio-"));
    this.code = join(this.home, "code");
    mkdirSync(this.code);
    writeFileSync(join(this.code, "train.py"), TRAIN);
    this.start();
    mkdirSync(shots, { recursive: true });
  }

  /** Environments are built once for this and all later homes; before the first is asked for. */
  shareBuilds() {
    for (const folder of ["environments", "tools"]) {
      const kept = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "peregrine/e2e", folder);
      mkdirSync(kept, { recursive: true });
      rmSync(join(this.home, folder), { recursive: true, force: true });
      symlinkSync(kept, join(this.home, folder));
    }
  }

  cli(...args) {
    const env = { ...process.env, PEREGRINE_HOME: this.home };
    return execFileSync(binary, args, { env, encoding: "utf8", timeout: 120_000, stdio: ["ignore", "pipe", "pipe"] });
  }

  start(listen = "127.0.0.1:0") {
    this.cli("server", "start", "--listen", listen);
    this.url = JSON.parse(this.cli("server", "status", "-o", "json")).url;
  }

  token() {
    return readFileSync(join(this.home, "keys/user.token"), "utf8").trim();
  }

  /** Makes something from a file that says `spec`; JSON is YAML too. */
  make(noun, spec, ...flags) {
    const file = join(this.home, `${noun}.yml`);
    writeFileSync(file, JSON.stringify(spec));
    return this.cli(noun, "create", "-f", file, "--query", "name", "-o", "tsv", ...flags).trim();
  }

  job(display_name, command, more = {}) {
    const spec = {
      $schema: "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json",
      display_name,
      command,
      code: this.code,
      environment: { image: "python:3.12-slim" },
      environment_variables: { HOSTILE },
      experiment_name: "vision",
      ...more,
    };
    return this.make("job", spec);
  }

  train(rate, depth, { pause = 0, steps = 60, name = `resnet depth ${depth}` } = {}) {
    const command = `python3 train.py \${{inputs.rate}} \${{inputs.depth}} ${pause} ${steps}`;
    return this.job(name, command, { inputs: { rate, depth }, tags: { team: "vision" } });
  }

  status(name) {
    return this.cli("job", "show", "-n", name, "--query", "status", "-o", "tsv").trim();
  }

  async until(what, done, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    while (Date.now() < end) {
      if (await done()) return;
      await new Promise((wake) => setTimeout(wake, 100));
    }
    throw new Error(`after ${seconds} s still not: ${what}`);
  }

  link(...args) {
    return this.cli("studio", "--print", ...args).trim();
  }

  /** Ends whatever names this home, and nothing else; then removes the home. */
  end() {
    for (let round = 0; round < 3; round++) {
      for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
        const read = (file) => {
          try {
            return readFileSync(`/proc/${pid}/${file}`, "utf8");
          } catch {
            return "";
          }
        };
        if (read("environ").includes(`=${this.home}`) || read("cmdline").includes(this.home)) {
          spawnSync("kill", ["-KILL", pid]);
        }
      }
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A browser with a page that notes what must never happen. */
export async function browse(options = {}) {
  const browser = await chromium.launch({ executablePath: process.env.STUDIO_CHROMIUM, args: ["--no-sandbox"] });
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const faults = [];
  const origins = new Set();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("dialog", (dialog) => dialog.type() === "alert" && faults.push(`a dialog: ${dialog.message()}`));
  page.on("console", (line) => /Content.Security.Policy|Each child in a list|Warning:/.test(line.text()) && faults.push(line.text()));
  page.on("request", (request) => !/^(blob|data):/.test(request.url()) && origins.add(new URL(request.url()).origin));
  return { browser, context, page, faults, origins };
}

/** Asks the server as its owner does, past the browser's session. */
export async function ask(world, tab, method, path, data) {
  const headers = { authorization: `Bearer ${world.token()}` };
  const answer = await tab.context.request.fetch(`${world.url}${path}`, { method, headers, data });
  assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
  return answer.json();
}

/** A call of MLflow's API by a program. */
export const mlflow = (world, tab, path, body) =>
  ask(world, tab, "POST", `/mlflow/v2.0${world.names}/api/2.0/mlflow/${path}`, body);

/** What axe finds serious on a page. */
export async function axeFinds(page) {
  // Past the page's policy, as a person with a reader of screens is.
  await page.evaluate(`${axe}; void 0`);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
}

export async function shoot(page, name) {
  await page.screenshot({ path: join(shots, `${name}.png`) });
}
