// JSON as YAML, for reading.

export function yaml(value: unknown, indent = ""): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]\n";
    return value.map((item) => `${indent}- ${nested(item, `${indent}  `).trimStart()}`).join("");
  }
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value);
    if (pairs.length === 0) return "{}\n";
    return pairs.map(([key, item]) => `${indent}${scalar(key)}:${isPlain(item) ? ` ${scalar(item, indent)}\n` : `\n${yaml(item, `${indent}  `)}`}`).join("");
  }
  return `${indent}${scalar(value, indent)}\n`;
}

function nested(item: unknown, indent: string): string {
  return isPlain(item) ? `${scalar(item, indent)}\n` : yaml(item, indent);
}

function isPlain(item: unknown): boolean {
  return typeof item !== "object" || item === null || Object.keys(item).length === 0;
}

function scalar(value: unknown, indent = ""): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  if (value.includes("\n")) return `|\n${value.replace(/\n$/, "").split("\n").map((line) => `${indent}  ${line}`).join("\n")}`;
  const safe = /^[A-Za-z_/$][\w ./$@{}()+=;<>-]*$/.test(value) && !/^(true|false|yes|no|null|on|off)$/i.test(value) && !/[ ]$/.test(value);
  return safe && !value.includes(" #") ? value : JSON.stringify(value);
}
