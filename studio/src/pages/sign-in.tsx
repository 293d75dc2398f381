// What a browser without a session sees.
import { type FormEvent, useState } from "react";
import { ask } from "../api/call.ts";
import { session_enter, studio_link } from "../api/routes.ts";
import { Copy, Problem } from "../parts/show.tsx";

export function SignIn({ done }: { done: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<Error>();
  const enter = async (event: FormEvent) => {
    event.preventDefault();
    try {
      const { code } = await ask<{ code: string }>(studio_link, {}, { body: {}, token: token.trim() });
      await ask(session_enter, {}, { body: { code, replace: true } });
      setToken("");
      done();
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  };
  return (
    <main className="alone">
      <h1>Peregrine</h1>
      <p>You are not signed in, or your session is over. On a machine with the command line, this opens the studio for you:</p>
      <Copy text="peregrine studio" />
      <form onSubmit={(event) => void enter(event)}>
        <label>
          Or sign in with a token
          <input type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} required />
        </label>
        <button type="submit">Sign in</button>
      </form>
      {error !== undefined && <Problem error={error} />}
    </main>
  );
}
