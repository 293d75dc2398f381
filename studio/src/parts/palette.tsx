// Ctrl-K: type a few letters, go there. `/` puts the cursor into the filter of the page, where it has one.
import { useEffect, useRef, useState } from "react";
import { ask } from "../api/call.ts";
import { mlflow_run_search } from "../api/routes.ts";
import type { Runs } from "../api/shapes.ts";
import { PAGES } from "./pages.ts";
import { at, go } from "./place.ts";
import { useScope } from "./scope.ts";
import { status } from "./words.ts";

interface Target {
  to: string;
  title: string;
  about: string;
}

const PAUSE_MS = 150;

export function Palette() {
  const { names, workspace } = useScope();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [jobs, setJobs] = useState<Target[]>([]);
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        setText("");
        dialog.current?.showModal();
      } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (filter) {
          event.preventDefault();
          filter.focus();
        }
      }
    };
    window.addEventListener("keydown", keys);
    return () => window.removeEventListener("keydown", keys);
  }, []);
  useEffect(() => {
    setChosen(0);
    const wanted = text.trim();
    if (wanted.length < 2) return setJobs([]);
    const stop = new AbortController();
    const timer = window.setTimeout(async () => {
      const quoted = wanted.replaceAll("'", "");
      try {
        const search = (filter: string) =>
          ask<Runs>(mlflow_run_search, names, { body: { experiment_ids: ["*"], max_results: 8, filter }, signal: stop.signal });
        const found = await Promise.all([search(`attributes.run_name ILIKE '%${quoted}%'`), search(`attributes.run_id = '${quoted}'`)]);
        const runs = found.flatMap(({ runs = [] }) => runs);
        const target = ({ info }: (typeof runs)[number]) => ({
          to: at(workspace.name, ["jobs", info.run_id]),
          title: info.run_name,
          about: `job ${info.run_id}, ${status(info.status).toLowerCase()}`,
        });
        setJobs(runs.map(target));
      } catch {
        setJobs([]);
      }
    }, PAUSE_MS);
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [text, names, workspace]);
  const pages = PAGES.filter(([, title]) => title.toLowerCase().includes(text.trim().toLowerCase())).map(([part, title]) => ({
    to: at(workspace.name, part === "" ? [] : [part]),
    title,
    about: "page",
  }));
  const targets: Target[] = [...pages, ...jobs];
  const follow = (target: Target | undefined) => {
    if (target === undefined) return;
    dialog.current?.close();
    go(target.to);
  };
  const move = (by: number) => setChosen((old) => Math.max(0, Math.min(targets.length - 1, old + by)));
  return (
    <dialog ref={dialog} className="palette" aria-label="Go to" onClick={(event) => event.target === dialog.current && dialog.current.close()}>
      <input
        autoFocus
        role="combobox"
        aria-label="Go to a page or a job"
        aria-expanded="true"
        aria-controls="targets"
        aria-activedescendant={targets.length > 0 ? `target-${chosen}` : undefined}
        placeholder="Go to a page or a job…"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") move(1);
          else if (event.key === "ArrowUp") move(-1);
          else if (event.key === "Enter") follow(targets[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="targets" role="listbox" aria-label="Places">
        {targets.map((target, index) => (
          <li key={`${index} ${target.to}`} id={`target-${index}`} role="option" aria-selected={index === chosen} onClick={() => follow(target)}>
            <b>{target.title}</b> <span>{target.about}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
