// What is shown where a part of the page has failed: what happened, and the way on. A piece of the page that the server
// no longer has, as after an upgrade, is got by loading the page anew, once by itself.
import { Component, type ReactNode } from "react";
import { recall, remember, THIS_TAB } from "./kept.ts";

const MISSING = /dynamically imported module|importing a module script failed|preload CSS/i;
const RELOADED = "peregrine-reloaded";
/** A page that fails again this soon is not helped by being loaded. */
const AGAIN_MS = 60_000;

/** Loads the page anew where that can help: the server answers, and it was not done just now. */
async function refresh(): Promise<void> {
  if (Date.now() - Number(recall(RELOADED, THIS_TAB) ?? 0) < AGAIN_MS) return;
  const answers = await fetch("/studio/", { cache: "no-store" }).then((answer) => answer.ok, () => false);
  if (answers && remember(RELOADED, String(Date.now()), THIS_TAB)) location.reload();
}

interface Props {
  children: ReactNode;
  /** What is shown; something else is tried anew. */
  at?: string;
}

export class Boundary extends Component<Props, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined };

  static getDerivedStateFromError(thrown: unknown): { error: Error } {
    return { error: thrown instanceof Error ? thrown : new Error(String(thrown)) };
  }

  override componentDidCatch(error: Error): void {
    if (MISSING.test(error.message)) void refresh();
  }

  override componentDidUpdate(before: Props): void {
    if (before.at !== this.props.at && this.state.error !== undefined) this.setState({ error: undefined });
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const missing = MISSING.test(error.message);
    return (
      <div className="problem" role="alert">
        <strong>This page cannot be shown</strong>
        <p>{missing ? "A part of it could not be fetched: the server was upgraded or does not answer." : `Something in it failed: ${error.message}`}</p>
        <p>
          <button type="button" onClick={() => location.reload()}>Load it again</button>
        </p>
      </div>
    );
  }
}
