// Text that someone has written with marks: headings, lists, code, what is strong. Whatever it says it becomes text, never
// markup, and what is not known here stays as it was written.
import type { ReactNode } from "react";

interface Block {
  kind: "heading" | "code" | "list" | "words";
  level: number;
  lines: string[];
}

export function Markdown({ text }: { text: string }) {
  return (
    <div className="words">
      {blocks(text).map((block, index) => (
        <One key={index} block={block} />
      ))}
    </div>
  );
}

function One({ block: { kind, level, lines } }: { block: Block }): ReactNode {
  switch (kind) {
    case "heading":
      return (
        <div className="heading" data-level={level} role="heading" aria-level={Math.min(6, level + 2)}>
          <Inline text={lines.join(" ")} />
        </div>
      );
    case "code":
      return <pre tabIndex={0}>{lines.join("\n")}</pre>;
    case "list":
      return (
        <ul>
          {lines.map((line, index) => (
            <li key={index}>
              <Inline text={line} />
            </li>
          ))}
        </ul>
      );
    case "words":
      return (
        <p>
          <Inline text={lines.join("\n")} />
        </p>
      );
  }
}

function blocks(text: string): Block[] {
  const found: Block[] = [];
  let fenced = false;
  // What a line goes on with, if anything.
  let open: Block | undefined;
  const begin = (block: Block) => {
    open = block;
    found.push(block);
  };
  for (const line of text.split("\n")) {
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*(?:[-*+]|\d+\.)\s+(.*)$/.exec(line);
    if (/^\s*```/.test(line)) {
      fenced = !fenced;
      if (fenced) begin({ kind: "code", level: 0, lines: [] });
      else open = undefined;
    } else if (fenced) open?.lines.push(line);
    else if (line.trim() === "") open = undefined;
    else if (heading) {
      found.push({ kind: "heading", level: (heading[1] ?? "").length, lines: [heading[2] ?? ""] });
      open = undefined;
    } else if (item) {
      if (open?.kind === "list") open.lines.push(item[1] ?? "");
      else begin({ kind: "list", level: 0, lines: [item[1] ?? ""] });
    } else if (open?.kind === "words") open.lines.push(line);
    else begin({ kind: "words", level: 0, lines: [line] });
  }
  return found;
}

/** Code, and what is strong or stressed, within a line. */
function Inline({ text }: { text: string }): ReactNode {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*)/).map((part, index) => {
    if (index % 2 === 0) return part;
    if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>;
    return part.startsWith("**") ? <strong key={index}>{part.slice(2, -2)}</strong> : <em key={index}>{part.slice(1, -1)}</em>;
  });
}
