// How the table of jobs is asked: a filter with completion, columns, and views that are kept.
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { recall, remember } from "../../parts/kept.ts";
import { ask } from "../../parts/place.ts";

const ATTRIBUTES = ["attributes.status", "attributes.run_name", "attributes.start_time", "attributes.user_id"];
const STATES = ["'RUNNING'", "'SCHEDULED'", "'FINISHED'", "'FAILED'", "'KILLED'"];

export function Filter({ value, keys, set }: { value: string; keys: string[]; set: (filter: string) => void }) {
  const [text, setText] = useState(value);
  const [chosen, setChosen] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(value), [value]);
  const word = /[\w.'`]*$/.exec(text)?.[0] ?? "";
  const state = /status\s*!?=\s*'?\w*$/.test(text);
  const fitting = (state ? STATES : [...ATTRIBUTES, ...keys.map(quoted)]).filter((key) => word !== "" && key.startsWith(word) && key !== word);
  const offered = fitting.slice(0, 8);
  const take = (offer: string) => {
    setText(text.slice(0, text.length - word.length) + offer + " ");
    setChosen(-1);
    input.current?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const offer = offered[Math.max(0, chosen)];
    if (event.key === "Enter") {
      if (chosen >= 0 && offer) take(offer);
      else set(text.trim());
    } else if (event.key === "Tab" && offer && !event.shiftKey) take(offer);
    else if (event.key === "ArrowDown") setChosen(Math.min(offered.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(-1, chosen - 1));
    else if (event.key === "Escape") set("");
    else return;
    event.preventDefault();
  };
  return (
    <div className="filter">
      <input
        ref={input}
        data-filter
        role="combobox"
        aria-label="Filter"
        aria-expanded={offered.length > 0}
        aria-controls="filter-offers"
        aria-activedescendant={offered[chosen] === undefined ? undefined : `filter-offer-${chosen}`}
        aria-autocomplete="list"
        placeholder="Filter, e.g. metrics.loss < 0.1 and params.lr = '0.01'   ( / )"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
      />
      <ul id="filter-offers" role="listbox" aria-label="Completions" hidden={offered.length === 0}>
        {offered.map((offer, index) => (
          <li key={offer} id={`filter-offer-${index}`} role="option" aria-selected={index === chosen} onMouseDown={() => take(offer)}>
            {offer}
          </li>
        ))}
      </ul>
    </div>
  );
}

function quoted(name: string): string {
  const [kind = "", ...rest] = name.split(".");
  const key = rest.join(".");
  return /^[A-Za-z_]\w*$/.test(key) ? name : `${kind}.\`${key}\``;
}

/** A column as someone types it: `metrics.`, `params.` or `tags.` and a name. */
const COLUMN = /^(metrics|params|tags)\.\S.*$/;

export function Chooser({ seen, chosen, set }: { seen: string[]; chosen: string[]; set: (columns: string[]) => void }) {
  const [wanted, setWanted] = useState("");
  const keys = useMemo(() => [...new Set([...chosen, ...seen])], [seen, chosen]);
  const flip = (key: string) => set(chosen.includes(key) ? chosen.filter((one) => one !== key) : [...chosen, key]);
  const typed = wanted.trim();
  // Of many runs only some are here; a name that none of these has can be written out.
  const fresh = COLUMN.test(typed) && !keys.includes(typed);
  const add = () => {
    set([...chosen, typed]);
    setWanted("");
  };
  return (
    <details className="menu">
      <summary>Columns</summary>
      <div>
        <input
          aria-label="Find a column"
          placeholder="find, or write metrics.loss"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && fresh && add()}
        />
        {fresh && <button type="button" onClick={add}>Add {typed}</button>}
        {keys
          .filter((key) => key.includes(wanted))
          .slice(0, 200)
          .map((key) => (
            <label key={key}>
              <input type="checkbox" checked={chosen.includes(key)} onChange={() => flip(key)} /> {key}
            </label>
          ))}
        {keys.length === 0 && <p className="dim">Nothing was logged yet.</p>}
      </div>
    </details>
  );
}

const KEPT = "views";

/** What is kept, as far as it can be read: a browser's store may hold anything. */
function kept(): Record<string, string> {
  try {
    const found: unknown = JSON.parse(recall(KEPT) ?? "{}");
    const pairs = typeof found === "object" && found !== null && !Array.isArray(found) ? Object.entries(found) : [];
    return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
  } catch {
    return {};
  }
}

/** Views are addresses with a name, kept in this browser. */
export function Views() {
  const [views, setViews] = useState(kept);
  const put = (next: Record<string, string>) => {
    remember(KEPT, JSON.stringify(next));
    setViews(next);
  };
  const keep = () => {
    const name = window.prompt("Name of this view");
    if (name) put({ ...views, [name]: location.search });
  };
  const open = (search: string) => {
    const query = new URLSearchParams(search);
    ask({ q: query.get("q") ?? "", columns: query.get("columns") ?? "", order: query.get("order") ?? "" });
  };
  return (
    <details className="menu">
      <summary>Views</summary>
      <div>
        <button type="button" onClick={() => open("")}>All jobs</button>
        {Object.entries(views).map(([name, search]) => (
          <span key={name} className="pair">
            <button type="button" onClick={() => open(search)}>{name}</button>
            <button
              type="button"
              className="quiet"
              aria-label={`Forget view ${name}`}
              onClick={() => put(Object.fromEntries(Object.entries(views).filter(([other]) => other !== name)))}
            >
              ×
            </button>
          </span>
        ))}
        <button type="button" onClick={keep}>Keep this view…</button>
      </div>
    </details>
  );
}
