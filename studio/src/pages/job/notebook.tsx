// A notebook as it was left: words, code, and what the code printed and drew.
import { useMemo } from "react";
import { Markdown } from "../../parts/markdown.tsx";
import { Picture } from "./picture.tsx";

type Lines = string | string[];

interface Output {
  text?: Lines;
  data?: Record<string, Lines>;
  /** Of a cell that failed. */
  traceback?: string[];
}

interface Cell {
  cell_type?: string;
  source?: Lines;
  outputs?: Output[];
}

const IMAGES = ["image/png", "image/jpeg", "image/gif"];

export function Notebook({ text }: { text: string }) {
  const cells = useMemo(() => read(text), [text]);
  if (cells === undefined) return <pre tabIndex={0}>{text}</pre>;
  return (
    <div className="notebook">
      {cells.map((cell, index) => (
        <div key={index} data-kind={cell.cell_type}>
          {cell.cell_type === "markdown" ? <Markdown text={whole(cell.source)} /> : <pre tabIndex={0}>{whole(cell.source)}</pre>}
          {(cell.outputs ?? []).map((output, at) => (
            <Printed key={at} output={output} name={`Output ${at + 1} of cell ${index + 1}`} />
          ))}
        </div>
      ))}
    </div>
  );
}

function read(text: string): Cell[] | undefined {
  try {
    const { cells } = JSON.parse(text) as { cells?: Cell[] };
    return Array.isArray(cells) ? cells : undefined;
  } catch {
    return undefined;
  }
}

function whole(lines: Lines | undefined): string {
  return [lines ?? ""].flat().join("");
}

function Printed({ output, name }: { output: Output; name: string }) {
  const type = IMAGES.find((type) => output.data?.[type] !== undefined);
  const coded = type === undefined ? "" : whole(output.data?.[type]);
  const bytes = useMemo(() => decoded(coded), [coded]);
  if (type !== undefined && bytes !== undefined) return <Picture pieces={bytes} type={type} name={name} />;
  const said = output.traceback ? output.traceback.join("\n") : whole(output.text ?? output.data?.["text/plain"]);
  // Colours of terminals are left out.
  return said === "" ? null : <pre className="dim" tabIndex={0}>{said.replace(/\u001b\[[0-9;]*m/g, "")}</pre>;
}

/** The bytes of an image as notebooks hold them. */
function decoded(coded: string): Uint8Array<ArrayBuffer>[] | undefined {
  try {
    return [Uint8Array.from(atob(coded.replaceAll(/\s/g, "")), (char) => char.charCodeAt(0))];
  } catch {
    return undefined;
  }
}
