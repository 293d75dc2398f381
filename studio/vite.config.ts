// Builds the studio into files that the server embeds, each beside its brotli twin.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Where `npm run dev` finds a server: one started with `--http` on this address. */
const server = process.env["PEREGRINE_HTTP"] ?? "http://127.0.0.1:17701";

function twins(): Plugin {
  let folder = "";
  return {
    name: "brotli-twins",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    async closeBundle() {
      for (const name of await readdir(folder, { recursive: true })) {
        if (!/\.(js|css|html|svg)$/.test(name)) continue;
        const plain = await readFile(join(folder, name));
        const small = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
        if (small.length < plain.length) await writeFile(join(folder, `${name}.br`), small);
      }
    },
  };
}

export default defineConfig({
  base: "/studio/",
  plugins: [twins()],
  build: { outDir: "dist", target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: {
    proxy: Object.fromEntries(
      ["/subscriptions", "/mlflow", "/admin", "/history", "/clusters", "/batchscore"].map((path) => [path, { target: server }]),
    ),
  },
});
