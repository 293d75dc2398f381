// Small pieces that every page is made of.
import { type MouseEvent, type ReactNode, useState } from "react";
import { Refused } from "../api/call.ts";
import type { Loaded } from "./data.ts";
import { go } from "./place.ts";
import { ago, mood, time } from "./words.ts";

interface LinkProps {
  to: string;
  children: ReactNode;
  className?: string;
  label?: string;
  /** Whether this is the view that is shown. */
  here?: boolean;
}

export function Link({ to, children, className, label, here = false }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} onClick={follow} className={className} aria-label={label} aria-current={here ? "page" : undefined}>
      {children}
    </a>
  );
}

export function Badge({ status }: { status: string }) {
  return <span className={`badge ${mood(status)}`}>{status}</span>;
}

export function Ago({ at }: { at: string | number | undefined }) {
  if (at === undefined || at === 0) return null;
  return <time title={time(at)}>{ago(at)}</time>;
}

/** A sentence of the server's, with what stands in backticks as code. */
export function Said({ children }: { children: string }) {
  return <>{children.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

export function Card({ title, children, aside }: { title: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <section className="card">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** What to type where there is nothing yet. */
export function Empty({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <p>{children}</p>
      {command !== undefined && <Copy text={command} />}
    </div>
  );
}

interface CopyProps {
  text: string;
  /** What the button is called where the text itself says too much. */
  label?: string;
  /** Only the button is shown. */
  hidden?: boolean;
}

export function Copy({ text, label = `Copy: ${text}`, hidden = false }: CopyProps) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span className="copy">
      {!hidden && <code>{text}</code>}
      <button type="button" className="quiet" onClick={() => void copy()} aria-label={label}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

export function Problem({ error }: { error: Error }) {
  const refused = error instanceof Refused && error.status === 403;
  return (
    <div className="problem" role="alert">
      <strong>{refused ? "Not allowed" : "That did not work"}</strong>
      <p>
        <Said>{error.message}</Said>
      </p>
    </div>
  );
}

/** The data once it is there; before that what is known of it. */
export function Wait<T>({ on, children }: { on: Loaded<T>; children: (data: T) => ReactNode }) {
  if (on.data !== undefined) return <>{children(on.data)}</>;
  if (on.error !== undefined) return <Problem error={on.error} />;
  return <div className="skeleton" aria-busy="true" aria-label="loading" />;
}

export function Tags({ tags }: { tags: Record<string, string> | null | undefined }) {
  return (
    <span className="tags">
      {Object.entries(tags ?? {}).map(([key, value]) => (
        <span className="tag" key={key}>
          {key}
          {value !== "" && <b>{String(value)}</b>}
        </span>
      ))}
    </span>
  );
}

export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Tabs({ label, tabs, here, to }: { label: string; tabs: [string, string][]; here: string; to: (part: string) => string }) {
  return (
    <div className="tabs" role="navigation" aria-label={label}>
      {tabs.map(([part, title]) => (
        <Link key={part} to={to(part)} here={part === here}>
          {title}
        </Link>
      ))}
    </div>
  );
}

/** A plain table for lists that are short. */
export function List<T>({ rows, columns, label, id, more = false }: {
  rows: T[];
  columns: [string, (row: T) => ReactNode][];
  label: string;
  id: (row: T) => string;
  /** There are more than these. */
  more?: boolean;
}) {
  return (
    <div className="scroll" tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map(([name]) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map(([name, cell]) => (
                <td key={name}>{cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more && <p className="dim">The first {rows.length} are shown; the command line lists them all.</p>}
    </div>
  );
}
