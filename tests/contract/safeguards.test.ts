// The checks of commits find a fault that was planted, and let through what a commit of its kind may change.
import { describe, expect, test } from "bun:test";
import { type ChangedFile, changeFaults, subjectFaults } from "../../scripts/safeguards/commits.ts";
import { emitted } from "../../scripts/safeguards/emitted.ts";
import { surfaceFile } from "../../scripts/surface/surface.ts";

const path = "src/domain/lease.ts";
const at = (text: string, where = path) => ({ path: where, text });
const change = (before: string, after: string, where = path): ChangedFile => ({
  before: at(before, where),
  after: at(after, where),
});
const faultsOf = (subject: string, files: readonly ChangedFile[], body = "") => changeFaults({ subject, body }, files);

const lease = `// Leases.
export interface Lease { turn: number; until: number }
/** Whether it ended. */
export function hasEnded({ until }: Lease, now: number): boolean {
  return until <= now;
}
`;

describe("a docs or style commit", () => {
  test("lets a docs commit change comments, types and formatting", () => {
    const rewritten = lease
      .replace("Whether it ended.", "Reports whether the lease has ended.")
      .replaceAll("\n", "\n\n");
    expect(faultsOf("docs(leases): describe the end", [change(lease, rewritten)])).toEqual([]);
    expect(emitted(path, rewritten)).toBe(emitted(path, lease));
  });

  test("refuses a docs commit that changes an operator", () => {
    expect(faultsOf("style: describe the end", [change(lease, lease.replace("<=", "<"))])).toEqual([
      `${path}: its JavaScript changes, which a \`style\` commit leaves alone.`,
    ]);
  });

  test("refuses a docs commit that adds or removes a file", () => {
    expect(faultsOf("docs: describe leases", [{ before: undefined, after: at(lease) }])).toHaveLength(1);
    expect(faultsOf("docs: describe leases", [{ before: at(lease), after: undefined }])).toHaveLength(1);
  });
});

const tested = `import { expect, test } from "bun:test";
test("what has ended", () => { expect(hasEnded(one, 2)).toBe(true); });
test.each([1, 2])("as well: %d", (n) => { expect(n).toBeGreaterThan(0); });
`;
const testPath = "src/domain/lease.test.ts";

describe("a test(titles) commit", () => {
  const subject = "test(titles): name what leases do";

  test("lets a test(titles) commit change titles", () => {
    const after = tested.replace("what has ended", "ends a lease on time").replace("as well: %d", "ends lease %d");
    expect(faultsOf(subject, [change(tested, after, testPath)])).toEqual([]);
  });

  test("refuses a test(titles) commit that loses a test", () => {
    const after = tested.split("\n").toSpliced(2, 1).join("\n");
    expect(faultsOf(subject, [change(tested, after, testPath)])).toEqual([
      `${testPath}: more than titles of tests changes.`,
    ]);
  });

  test("refuses a test(titles) commit that changes an expectation", () => {
    expect(faultsOf(subject, [change(tested, tested.replace("true", "false"), testPath)])).toHaveLength(1);
  });
});

const wire = `import { look, type Turn } from "./turn.ts";
export class Desk { #turn = 1; write(turn: Turn) { return JSON.stringify({ turn, kind: "turn" }) + look(this.#turn); } }
`;
const renames: ChangedFile = {
  before: undefined,
  after: at("turn tick\n#turn #tick\nlook poll\n", "scripts/safeguards/renames.txt"),
};

describe("a refactor(names) commit", () => {
  const subject = "refactor(names): call a turn of the loop a tick";
  const kept = wire
    .replace("import { look, type Turn } from", "import { poll, type Turn } from")
    .replace("look(this.#turn)", "poll(this.#tick)")
    .replace("#turn = 1", "#tick = 1")
    .replace("write(turn: Turn)", "write(tick: Turn)")
    .replace("{ turn, kind", "{ turn: tick, kind");

  test("lets a refactor(names) commit rename by the table with exported members kept", () => {
    expect(faultsOf(subject, [renames, change(wire, kept)])).toEqual([]);
  });

  test("refuses a refactor(names) commit with an unlisted name", () => {
    expect(faultsOf(subject, [renames, change(wire, kept.replace("Desk", "Handler"))])).toEqual([
      `${path}: "Desk" becomes "Handler", which renames.txt does not list.`,
    ]);
  });

  test("refuses a refactor(names) commit that changes a string", () => {
    expect(faultsOf(subject, [renames, change(wire, kept.replace('"turn"', '"tick"'))])).toHaveLength(1);
  });

  test("refuses a refactor(names) commit that drops an import", () => {
    expect(faultsOf(subject, [renames, change(`import "./side.ts";\n${wire}`, kept)])).toHaveLength(1);
  });

  test("lets a refactor(names) commit move files", () => {
    const moved: ChangedFile = {
      before: at("export type Turn = number; export const look = 1;", "src/domain/turn.ts"),
      after: at("export type Turn = number; export const poll = 1;", "src/domain/tick.ts"),
    };
    const after = kept.replace("./turn.ts", "./tick.ts");
    expect(faultsOf(subject, [renames, moved, change(wire, after)])).toEqual([]);
    expect(faultsOf(subject, [renames, change(wire, after)])).toHaveLength(1);
  });
});

describe("a commit that changes the surface", () => {
  const before = "# metrics\nheadrace_ready gauge\n\n# routes\nGET /readyz public\n";
  const file = change(before, before.replace("headrace_ready", "headrace_is_ready"), surfaceFile);

  test("refuses a commit whose body does not name its surface change", () => {
    expect(faultsOf("feat: rename a metric", [file])).toEqual([
      'The surface changes in "metrics", and the body has no line "Surface: metrics".',
    ]);
    expect(faultsOf("feat: rename a metric", [file], "Why not.\n\nSurface: routes")).toHaveLength(1);
  });

  test("accepts a commit whose body names its surface change", () => {
    expect(faultsOf("feat: rename a metric", [file], "For a reason.\n\nSurface: metrics")).toEqual([]);
  });
});

test.each([
  ["fix(limits): count a retry once", 0],
  ["feat!: drop the old names", 0],
  ["Merge branch 'one' into main", 0],
  ["count a retry once", 1],
  ["fix(limits): a retry is counted once", 1],
  [`fix(limits): count ${"very ".repeat(12)}often`, 1],
] as const)("finds the faults of the commit subject %j", (subject, faults) => {
  expect(subjectFaults(subject)).toHaveLength(faults);
});
