// The page of everything that outlives its request: the declarations of the code, each with the tests that try it.
import type { Bound, LongLived } from "../src/base/long-lived.ts";
import { linkTo, quoted, type TestFile, taggedIn } from "./hardening.ts";

/** Directly above a test: `// long-lived: batch.account, batch.server`. */
const tag = /^[ \t]*\/\/ long-lived: *(.*)\n/gm;

type Kinds = readonly (readonly [id: string, kind: LongLived])[];

/** The page, and what is wrong with the tags, one line each. `owed`: cells that no test tries yet. */
export function longLivedPage(
  kinds: Kinds,
  files: readonly TestFile[],
  owed: readonly string[],
): { page: string; faults: string[] } {
  const faults: string[] = [];
  const tests = new Map<string, string[]>();
  for (const file of files) {
    for (const { rows, name } of taggedIn(file, tag, faults)) {
      for (const row of rows) tests.set(row, [...(tests.get(row) ?? []), `${linkTo(file.path)}: ${quoted(name)}`]);
    }
  }
  const cells = kinds.flatMap(([id, kind]) => cellsOf(kind).map((cell) => `${id}.${cell}`));
  for (const cell of cells) {
    if (tests.has(cell) && owed.includes(cell))
      faults.push(`scripts/house/owed.ts: ${cell} has a test: remove it there.`);
    if (tests.has(cell) || owed.includes(cell)) continue;
    faults.push(`src/base/long-lived.ts: no test says \`// long-lived: ${cell}\`.`);
  }
  for (const name of [...tests.keys(), ...owed]) {
    if (!cells.includes(name)) faults.push(`src/base/long-lived.ts: declares no ${name}.`);
  }
  return { page: pageOf(kinds, tests), faults };
}

/** What of a kind a test has to try: each bound that is counted or set, each limit of time, and each ending. */
function cellsOf({ bounds, idleMs, maxMs, ends }: LongLived): string[] {
  const counted = Object.entries(bounds).flatMap(([name, bound]) =>
    "text" in bound && !bound.text.startsWith("`") ? [] : [name],
  );
  return [
    ...counted,
    ...(idleMs === undefined ? [] : ["idle"]),
    ...(maxMs === undefined ? [] : ["age"]),
    ...(ends.credential.startsWith("stays") || ends.credential.startsWith("no ") ? [] : ["credential"]),
    ...(ends.server.startsWith("stays") ? [] : ["server"]),
  ];
}

function pageOf(kinds: Kinds, tests: ReadonlyMap<string, readonly string[]>): string {
  const rows = kinds.map(([, { name, bounds, idleMs, idle, maxMs, ends }]) => {
    const limit = (ms: number | undefined) => (ms === undefined ? "none" : durationOf(ms));
    const [key, account, address, total] = [bounds.key, bounds.account, bounds.address, bounds.total].map(boundOf);
    const cells = [name, key, account, address, total, idle ?? limit(idleMs), limit(maxMs)];
    return `| ${[...cells, ends.credential, ends.owner, ends.server].join(" | ")} |`;
  });
  const tried = kinds.map(([id, kind]) => {
    const lines = cellsOf(kind).flatMap((cell) => (tests.get(`${id}.${cell}`) ?? []).map((test) => `${cell}: ${test}`));
    return `| ${kind.name} | ${lines.join("<br>").replaceAll("](../", "](../../") || "–"} |`;
  });
  return `# What outlives a request

This page lists everything in a server that outlives the request that began it: how many there may be, when an unused one ends, and what ends it. \`src/base/long-lived.ts\` declares the rows, and the code takes its bounds from there. \`npm run check\` refuses a file that makes a socket, process, repeating timer, streamed answer or waiting entry and has no row.

A share such as 1/8 is of the connections that the process takes, which is half of its file descriptors. Long-lived connections of all kinds together get at most half of those, so requests are served while all of the slots are taken. Bounds count in each server process. With \`workers\`, the primary process counts sockets and sessions for all workers. The dashboard has no stream of its own: it polls.

| What | By key | By account | By address | In total | Idle limit | Age limit | If the credential ends | If the person or account ends | If the server stops |
|---|---|---|---|---|---|---|---|---|---|
${rows.join("\n")}

## Tests

| What | Tests |
|---|---|
${tried.join("\n")}
`;
}

function boundOf(bound: Bound): string {
  if ("text" in bound) return bound.text;
  if ("most" in bound) return bound.most.toLocaleString("en-US");
  return bound.part === 1 ? "all connections" : `1/${Math.round(1 / bound.part)} of the connections`;
}

function durationOf(ms: number): string {
  const units = [
    ["day", 86_400_000],
    ["hour", 3_600_000],
    ["minute", 60_000],
    ["second", 1_000],
  ] as const;
  const [unit, length] = units.find(([, of]) => ms >= of && ms % of === 0) ?? ["millisecond", 1];
  const count = ms / length;
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
