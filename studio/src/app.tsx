// The frame of every page: who is signed in, which workspace, where to go.
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { ask as call, Refused, SIGNED_OUT } from "./api/call.ts";
import { session as sessionRoute, session_enter, session_leave } from "./api/routes.ts";
import type { Session } from "./api/shapes.ts";
import { Endpoints } from "./pages/endpoints.tsx";
import { Assets } from "./pages/assets.tsx";
import { Batch } from "./pages/batch.tsx";
import { ComputePage } from "./pages/compute.tsx";
import { Home } from "./pages/home.tsx";
import { Jobs } from "./pages/jobs.tsx";
import { Schedules } from "./pages/schedules.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { WorkspacePage } from "./pages/workspace.tsx";
import { Boundary } from "./parts/boundary.tsx";
import { useAway } from "./parts/data.ts";
import { recall, remember } from "./parts/kept.ts";
import { PAGES } from "./parts/pages.ts";
import { Palette } from "./parts/palette.tsx";
import { at, go, type Place, usePlace } from "./parts/place.ts";
import { namesOf, ScopeContext, scopeOf } from "./parts/scope.ts";
import { Empty, Link, Said } from "./parts/show.tsx";

// What draws charts is fetched when a chart is wanted.
const JobPage = lazy(async () => ({ default: (await import("./pages/job.tsx")).JobPage }));
const Compare = lazy(async () => ({ default: (await import("./pages/compare.tsx")).Compare }));

const RENEW_MS = 10 * 60_000;

export function App() {
  const [session, setSession] = useState<Session | null | undefined>();
  const [stranger, setStranger] = useState<Stranger>();
  const load = () => call<Session>(sessionRoute, {}).then(setSession, () => setSession(null));
  useEffect(() => {
    void enter().then(setStranger).then(load);
    const out = () => setSession(null);
    const timer = window.setInterval(() => {
      if (!document.hidden) void call<Session>(sessionRoute, {}).then(setSession, () => undefined);
    }, RENEW_MS);
    window.addEventListener(SIGNED_OUT, out);
    return () => {
      window.clearInterval(timer);
      window.removeEventListener(SIGNED_OUT, out);
    };
  }, []);
  if (session === undefined) return <div className="skeleton" aria-busy="true" aria-label="loading" />;
  if (session === null) return <SignIn done={() => void load()} />;
  if (stranger !== undefined) {
    const stay = () => setStranger(undefined);
    return <Whose stranger={stranger} stay={stay} change={() => void enterAs(stranger.code, true).then(load).then(stay)} />;
  }
  return <Shell session={session} leave={() => setSession(null)} />;
}

/** A link of someone else than who is signed in. */
interface Stranger {
  code: string;
  message: string;
}

/** Uses the code of a link, which is taken out of the address before anything else happens. */
async function enter(): Promise<Stranger | undefined> {
  const code = /^#enter=(\w+)$/.exec(location.hash)?.[1];
  if (code === undefined) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return enterAs(code, false);
}

async function enterAs(code: string, replace: boolean): Promise<Stranger | undefined> {
  try {
    await call(session_enter, {}, { body: { code, replace } });
  } catch (error) {
    if (error instanceof Refused && error.status === 409) return { code, message: error.message };
  }
  return undefined;
}

function Whose({ stranger, stay, change }: { stranger: Stranger; stay: () => void; change: () => void }) {
  return (
    <main className="alone">
      <h1>Whose link is this?</h1>
      <p>
        <Said>{`${stranger.message.charAt(0).toUpperCase()}${stranger.message.slice(1)}.`}</Said> What you do after signing in with it is done in that person&apos;s name.
      </p>
      <div className="bar">
        <button type="button" onClick={stay}>Stay signed in</button>
        <button type="button" onClick={change}>Sign in with the link</button>
      </div>
    </main>
  );
}

function Shell({ session, leave }: { session: Session; leave: () => void }) {
  const place = usePlace();
  const away = useAway();
  const found = session.workspaces.find(({ name }) => name.toLowerCase() === place.workspace.toLowerCase());
  const usual = session.workspaces.find(({ name }) => name === session.workspace) ?? session.workspaces[0];
  const shown = found ?? usual;
  // A session that is renewed says the same again: what was loaded under these names stays.
  const names = useMemo(() => namesOf(shown?.path ?? "", shown?.name ?? ""), [shown?.path, shown?.name]);
  const scope = useMemo(() => shown && scopeOf(session, shown, names), [session, shown, names]);
  useEffect(() => {
    if (place.workspace === "" && usual) go(at(usual.name), true);
  }, [place.workspace, usual]);
  const signOut = () => void call(session_leave, {}).finally(leave);
  if (scope === undefined) {
    return (
      <main className="alone">
        <Empty>You are signed in as {session.name} and have no role in any workspace. An owner can give you one with “peregrine principal grant”.</Empty>
        <button type="button" onClick={signOut}>Sign out</button>
      </main>
    );
  }
  const name = scope.workspace.name;
  const view = `${name}/${place.parts.slice(0, 2).join("/")}`;
  const here = place.parts[0] ?? "";
  return (
    <ScopeContext value={scope}>
      <a className="skip" href="#content">Skip to the content</a>
      <nav aria-label="Pages">
        <Link to={at(name)} className="brand" label="Peregrine, home">
          <Falcon /> Peregrine
        </Link>
        <label className="workspace">
          <span>Workspace</span>
          <select value={name} onChange={(event) => go(at(event.target.value))}>
            {session.workspaces.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
        <ul>
          {PAGES.map(([part, title]) => (
            <li key={part}>
              <Link to={at(name, part === "" ? [] : [part])} here={part === here || (part === "jobs" && here === "compare")}>
                {title}
              </Link>
            </li>
          ))}
        </ul>
        <footer>
          <Theme />
          <span title={`version ${session.version}`}>{session.name}</span>
          <button type="button" className="quiet" onClick={signOut}>Sign out</button>
        </footer>
      </nav>
      <main id="content" tabIndex={-1}>
        {away && <div className="banner" role="status">The server does not answer. What you see may be old; trying again.</div>}
        {found === undefined && place.workspace !== "" ? (
          <Empty>There is no workspace “{place.workspace}” that you may see.</Empty>
        ) : (
          <Boundary at={`${name}/${place.parts.join("/")}`}>
            <Suspense fallback={<div className="skeleton" aria-busy="true" />}>
              <View place={place} key={view} />
            </Suspense>
          </Boundary>
        )}
      </main>
      <Palette />
    </ScopeContext>
  );
}

function View({ place: { parts } }: { place: Place }) {
  const [page = "", name, tab] = parts;
  useEffect(() => {
    const title = PAGES.find(([part]) => part === page)?.[1] ?? "";
    document.title = [name, title, "Peregrine"].filter(Boolean).join(" · ");
  }, [page, name]);
  switch (page) {
    case "":
      return <Home />;
    case "jobs":
      return name === undefined ? <Jobs /> : <JobPage name={name} tab={tab ?? "overview"} />;
    case "compare":
      return <Compare />;
    case "models":
    case "data":
    case "environments":
    case "components":
      return <Assets kind={page} name={name} />;
    case "endpoints":
      return <Endpoints name={name} tab={tab ?? "overview"} />;
    case "batch":
      return <Batch name={name} />;
    case "schedules":
      return <Schedules name={name} />;
    case "compute":
      return <ComputePage />;
    case "workspace":
      return <WorkspacePage />;
    default:
      return <Empty>There is no page “{page}”.</Empty>;
  }
}

function Falcon() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <path d="M3 11c7-1 11 1 13 5 2-6 7-9 13-9-4 2-6 5-7 10-1 6-6 9-12 9l4-5c-6 0-9-3-11-10z" fill="currentColor" />
    </svg>
  );
}

/** Light, dark, or as the system has it. */
function Theme() {
  const [theme, setTheme] = useState(() => recall("theme") ?? "");
  useEffect(() => {
    if (theme === "") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    remember("theme", theme);
    window.dispatchEvent(new Event("peregrine-theme"));
  }, [theme]);
  return (
    <select aria-label="Colours" value={theme} onChange={(event) => setTheme(event.target.value)}>
      <option value="">System colours</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
