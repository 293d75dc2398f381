// Files of a job, with a look inside: text, tables, images, notebooks. What a file holds is shown as text or drawn as an
// image, never as a page.
import { useMemo, useState } from "react";
import { ask, bytesOf, send } from "../../api/call.ts";
import { job_artifact, job_artifacts } from "../../api/routes.ts";
import type { Artifact, Page } from "../../api/shapes.ts";
import { useData } from "../../parts/data.ts";
import { ask as askPlace, usePlace } from "../../parts/place.ts";
import { type Scope, useScope } from "../../parts/scope.ts";
import { Empty, Problem, Wait } from "../../parts/show.tsx";
import { bytes } from "../../parts/words.ts";
import { Notebook } from "./notebook.tsx";
import { Picture } from "./picture.tsx";

/** The most that is fetched to be looked at; and to be saved, which happens in the browser's memory. */
const LOOK_BYTES = 2 << 20;
/** Images, alone or in a notebook, are long. */
const IMAGE_BYTES = 32 << 20;
const SAVE_BYTES = 512 << 20;
const IMAGES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml", bmp: "image/bmp" };

export function Files({ name }: { name: string }) {
  const { names } = useScope();
  const { query } = usePlace();
  const files = useData(`files ${name}`, (signal) => ask<Page<Artifact>>(job_artifacts, { ...names, name }, { signal }), 10_000);
  const chosen = query.get("file") ?? "";
  return (
    <Wait on={files}>
      {({ value }) => {
        if (value.length === 0) return <Empty>The job has left no files yet. What it writes to “./outputs” is kept.</Empty>;
        const file = value.find(({ path }) => path === chosen);
        return (
          <div className="split">
            <ul className="plain files" aria-label="Files">
              {value.map((one) => (
                <li key={one.path}>
                  <button type="button" className={one.path === chosen ? "here" : ""} onClick={() => askPlace({ file: one.path })}>
                    {one.path}
                  </button>
                  <span className="dim">{bytes(one.size)}</span>
                </li>
              ))}
            </ul>
            {file ? <Preview key={file.path} name={name} file={file} /> : <Empty>Choose a file to look inside.</Empty>}
          </div>
        );
      }}
    </Wait>
  );
}

/** A file from its beginning, piece by piece. */
async function fetchFile(names: Scope["names"], name: string, path: string, most: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>[]> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  while (offset < most) {
    const answer = await send(job_artifact, { ...names, name, path }, { query: { offset }, signal });
    const piece = await bytesOf(answer, signal);
    if (piece.length === 0) break;
    pieces.push(piece);
    offset += piece.length;
  }
  return pieces;
}

function Preview({ name, file }: { name: string; file: Artifact }) {
  const { names } = useScope();
  const [problem, setProblem] = useState<Error>();
  const end = file.path.split(".").at(-1)?.toLowerCase() ?? "";
  const image = IMAGES[end];
  const most = image || end === "ipynb" ? IMAGE_BYTES : LOOK_BYTES;
  const content = useData(`${name} ${file.path} ${file.size}`, (signal) => fetchFile(names, name, file.path, Math.min(most, Math.max(file.size, 1)), signal));
  const save = async () => {
    try {
      if (file.size > SAVE_BYTES) throw new Error(`the file is large; get it with “peregrine job download -n ${name} --all”`);
      const blob = new Blob(await fetchFile(names, name, file.path, SAVE_BYTES));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = file.path.split("/").at(-1) ?? "file";
      link.click();
      window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (error) {
      setProblem(error instanceof Error ? error : new Error(String(error)));
    }
  };
  return (
    <section className="card preview">
      <header>
        <h2>{file.path}</h2>
        <button type="button" onClick={() => void save()}>Save</button>
      </header>
      {problem !== undefined && <Problem error={problem} />}
      <Wait on={content}>{(pieces) => (image ? <Picture pieces={pieces} type={image} name={file.path} /> : <Words pieces={pieces} end={end} whole={file.size <= most} />)}</Wait>
    </section>
  );
}

function Words({ pieces, end, whole }: { pieces: Uint8Array<ArrayBuffer>[]; end: string; whole: boolean }) {
  const text = useMemo(() => {
    const decoder = new TextDecoder();
    return pieces.map((piece) => decoder.decode(piece, { stream: true })).join("");
  }, [pieces]);
  const binary = text.slice(0, 4000).includes("\0");
  if (binary) return <Empty>This is not text. Save it to open it with a program of your own.</Empty>;
  return (
    <>
      {!whole && <p className="dim">Only the beginning is shown.</p>}
      {end === "csv" || end === "tsv" ? <Sheet text={text} mark={end === "csv" ? "," : "\t"} /> : end === "ipynb" ? <Notebook text={text} /> : <pre tabIndex={0}>{end === "json" && whole ? pretty(text) : text}</pre>}
    </>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const ROWS = 500;

function Sheet({ text, mark }: { text: string; mark: string }) {
  const [head = [], ...rows] = useMemo(() => split(text, mark, ROWS + 1), [text, mark]);
  return (
    <div className="scroll" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Rows of a table in text, with quotes that may hold marks and ends of lines. */
export function split(text: string, mark: string, most: number): string[][] {
  const rows: string[][] = [];
  let [row, cell, quoted]: [string[], string, boolean] = [[], "", false];
  for (let at = 0; at < text.length && rows.length < most; at++) {
    const c = text.charAt(at);
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text.charAt(at + 1) === '"') cell += text.charAt(++at);
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === mark) {
      row.push(cell);
      cell = "";
    } else if (c === "\n") {
      rows.push([...row, cell.replace(/\r$/, "")]);
      [row, cell] = [[], ""];
    } else cell += c;
  }
  if (rows.length < most && (cell !== "" || row.length > 0)) rows.push([...row, cell]);
  return rows;
}
