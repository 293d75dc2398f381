// A table of any length: only the rows in sight are in the page. Rows that are not loaded yet are asked for by the number
// of the first and the last one in sight.
import { type CSSProperties, type KeyboardEvent, memo, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

export const ROW_PX = 36;
const SPARE = 8;
/** As in the sheet: between columns, and beside them with the bar that scrolls. */
const [GAP_PX, SIDES_PX] = [10, 40];

/** Which way a column is in order that can be. */
export type Sorted = "ascending" | "descending" | "none";

export interface Column<T> {
  key: string;
  sorted?: Sorted;
  title: ReactNode;
  /** The least width. */
  px: number;
  /** Its share of what is left over; none where it keeps its width. */
  grow?: number;
  cell: (row: T) => ReactNode;
}

/** Drawn anew only when what it shows is another: a table that is scrolled draws the rows that come into sight. */
const Line = memo(function Line<T>({ index, item, columns, tracks }: { index: number; item: T | undefined; columns: Column<T>[]; tracks: CSSProperties }) {
  return (
    <div className="row" role="row" aria-rowindex={index + 2} data-index={index} style={{ ...tracks, transform: `translateY(${index * ROW_PX}px)` }}>
      {columns.map((column) => (
        <div key={column.key} role="cell">
          {item === undefined ? <span className="ghost" /> : column.cell(item)}
        </div>
      ))}
    </div>
  );
}) as <T>(props: { index: number; item: T | undefined; columns: Column<T>[]; tracks: CSSProperties }) => ReactNode;

export function Rows<T>({ count, row, columns, onSight, label }: {
  count: number;
  row: (index: number) => T | undefined;
  columns: Column<T>[];
  onSight: (first: number, last: number) => void;
  label: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE);
  const last = Math.min(count - 1, Math.ceil((top + height) / ROW_PX) + SPARE);
  useEffect(() => onSight(first, last), [first, last, onSight]);
  const tracks = useMemo(
    () => ({ gridTemplateColumns: columns.map(({ px, grow }) => (grow === undefined ? `${px}px` : `minmax(${px}px, ${grow}fr)`)).join(" ") }),
    [columns],
  );
  const least = columns.reduce((sum, { px }) => sum + px + GAP_PX, SIDES_PX);
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !(event.target instanceof HTMLElement)) return;
    const at = Number(event.target.closest<HTMLElement>("[data-index]")?.dataset["index"]);
    const next = box.current?.querySelector<HTMLElement>(`[data-index="${at + step}"] a`);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  return (
    <div className="rows" role="table" aria-label={label} aria-rowcount={count + 1}>
      <div className="sheet" role="presentation" style={{ minWidth: least }}>
        <div className="row head" role="row" aria-rowindex={1} style={tracks}>
          {columns.map((column) => (
            <div key={column.key} role="columnheader" aria-sort={column.sorted}>
              {column.title}
            </div>
          ))}
        </div>
        <div className="body" role="rowgroup" tabIndex={0} ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={keys}>
          <div role="presentation" style={{ height: count * ROW_PX, position: "relative" }}>
            {shown.map((index) => (
              <Line key={index} index={index} item={row(index)} columns={columns} tracks={tracks} />
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}
