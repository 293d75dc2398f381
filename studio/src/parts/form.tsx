// A dialog with fields: it closes when what it sends was accepted, and otherwise says why not.
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Problem } from "./show.tsx";

interface FormProps {
  title: string;
  children: ReactNode;
  /** What the button says that sends it. */
  does: string;
  send: () => Promise<unknown>;
  close: () => void;
}

export function Form({ title, children, does, send, close }: FormProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error>();
  useEffect(() => dialog.current?.showModal(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    send().then(close, (error: unknown) => {
      setProblem(error instanceof Error ? error : new Error(String(error)));
      setBusy(false);
    });
  };
  return (
    <dialog ref={dialog} className="form" onClose={close} aria-labelledby={id}>
      <form onSubmit={submit}>
        <h2 id={id}>{title}</h2>
        {children}
        {problem !== undefined && <Problem error={problem} />}
        <div className="bar">
          <button type="submit" disabled={busy}>{does}</button>
          <button type="button" className="quiet" onClick={close}>Leave it</button>
        </div>
      </form>
    </dialog>
  );
}

interface FieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
  /** Said below it. */
  hint?: string;
  optional?: boolean;
  type?: "text" | "password" | "number";
  lines?: number;
}

export function Field({ label, value, set, hint, optional = false, type = "text", lines }: FieldProps) {
  const shared = { value, required: !optional, spellCheck: false, autoComplete: "off" as const };
  return (
    <label>
      {label}
      {lines === undefined ? (
        <input {...shared} type={type} onChange={(event) => set(event.target.value)} />
      ) : (
        <textarea {...shared} rows={lines} onChange={(event) => set(event.target.value)} />
      )}
      {hint !== undefined && <small className="dim">{hint}</small>}
    </label>
  );
}

export function Choice({ label, value, set, options }: { label: string; value: string; set: (value: string) => void; options: [string, string][] }) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => set(event.target.value)}>
        {options.map(([key, name]) => (
          <option key={key} value={key}>{name}</option>
        ))}
      </select>
    </label>
  );
}
