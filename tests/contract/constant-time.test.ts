// Secrets, digests and signatures are compared in constant time wherever somebody at the other end could measure.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const source = join(import.meta.dir, "..", "..", "src");
/** What a request is compared with; names of values that are secret, or that stand for one. */
const comparison = /\b\w*(?:[dD]igest|[sS]ecret|[sS]ignature|[cC]srf|[vV]erifier|[pP]assword)\s*[!=]==?\s*(\w+)/g;
/** Nothing is learnt from these: presence, and what both came from the database. */
const plain = new Set(["undefined", "null", "true", "false"]);
const ofTheDatabase = [
  "policy/credentials/credential-cache.ts digest current",
  "storage/tables/people/session-store.ts digest digest",
];

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return files(path);
    return path.endsWith(".ts") && !path.endsWith(".test.ts") ? [path] : [];
  });
}

// hardening: A7
test("compares secrets in constant time only", () => {
  const found = ["oauth", "policy", "accounts", "http", "nodes", "storage", "domain"]
    .flatMap((folder) => files(join(source, folder)))
    .flatMap((path) =>
      [...readFileSync(path, "utf8").matchAll(comparison)]
        .filter(([, other = ""]) => !plain.has(other))
        .map(([text, other]) => `${path.slice(source.length + 1)} ${/(\w+)\s*[!=]/.exec(text)?.[1]} ${other}`),
    );
  expect(found.sort()).toEqual(ofTheDatabase);
});
