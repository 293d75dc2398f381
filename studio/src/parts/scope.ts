// The workspace that is shown, known to every part below.
import { createContext, useContext } from "react";
import type { Session, Workspace } from "../api/shapes.ts";

export interface Scope {
  session: Session;
  workspace: Workspace;
  /** The names in resource paths. */
  names: { subscription: string; group: string; workspace: string };
  /** Whether the reader may change things here. */
  works: boolean;
  owns: boolean;
}

export function namesOf(path: string, workspace: string): Scope["names"] {
  const [, , subscription = "", , group = ""] = path.split("/");
  return { subscription, group, workspace };
}

export function scopeOf(session: Session, workspace: Workspace, names = namesOf(workspace.path, workspace.name)): Scope {
  const { role } = workspace;
  return {
    session,
    workspace,
    names,
    works: role !== "reader",
    owns: role === "owner",
  };
}

export const ScopeContext = createContext<Scope | null>(null);

export function useScope(): Scope {
  const scope = useContext(ScopeContext);
  if (scope === null) throw new Error("a page stands outside a workspace");
  return scope;
}
