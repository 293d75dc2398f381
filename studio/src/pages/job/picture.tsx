// An image from its bytes. Drawn as one it can do nothing else, whatever is in it.
import { useEffect, useState } from "react";

export function Picture({ pieces, type, name }: { pieces: Uint8Array<ArrayBuffer>[]; type: string; name: string }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob(pieces, { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [pieces, type]);
  return url === "" ? null : <img src={url} alt={name} />;
}
