// One of several things on a page that an address can name: it comes into sight and is marked.
import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "./show.tsx";

export function Linked({ here, children }: { here: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (here) box.current?.scrollIntoView({ block: "start" });
  }, [here]);
  return (
    <div ref={box} className={here ? "linked here" : "linked"}>
      {children}
    </div>
  );
}

/** The way to the address of one of them, to be copied or opened. */
export function Anchor({ to, name }: { to: string; name: string }) {
  return (
    <Link to={to} className="anchor" label={`Address of ${name}`}>
      #
    </Link>
  );
}
