// The run of all looks: each within its time, none in the way of another, and no secret in what is told.
import { expect, test } from "bun:test";
import { examine } from "./examine.ts";
import { failure, type Group, type GroupReport, ok } from "./finding.ts";
import { withoutSecrets } from "./redaction.ts";

const never = new AbortController().signal;
const check = (name: string, run: Group["checks"][number]["run"]) => ({ name, run });

test("a look that never ends is told as such at its deadline, and the others are not kept waiting", async () => {
  const told: GroupReport[] = [];
  const groups: Group[] = [
    { title: "Slow", checks: [check("hangs", () => new Promise(() => {})), check("quick", () => ok("quick", "fine"))] },
    { title: "Other", checks: [check("other", () => [ok("other", "fine")])] },
  ];
  const reports = await examine(groups, { signal: never, deadlineMs: 30, onGroup: (report) => told.push(report) });
  expect(reports.map(({ findings }) => findings.map(({ name, level }) => `${name} ${level}`))).toEqual([
    ["hangs failure", "quick ok"],
    ["other ok"],
  ]);
  expect(reports[0]?.findings[0]?.found).toBe("no answer within 0.03 s");
  expect(told).toEqual(reports);
});

test("a look is told when its time is over, so that it can let go of what it holds", async () => {
  let isAborted = false;
  const run = (signal: AbortSignal) =>
    new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => {
        isAborted = true;
        reject(signal.reason);
      }),
    );
  await examine([{ title: "Slow", checks: [check("waits", run)] }], { signal: never, deadlineMs: 20 });
  expect(isAborted).toBe(true);
});

test("a look that throws is a failure of its own, and groups in which nothing was found are left out", async () => {
  const broken = check("broken", () => {
    throw new Error("of glass.");
  });
  const reports = await examine(
    [
      { title: "A", checks: [broken, check("whole", () => ok("whole", "fine"))] },
      { title: "B", checks: [check("nothing", () => [])] },
    ],
    { signal: never },
  );
  expect(reports.map(({ title }) => title)).toEqual(["A"]);
  expect(reports[0]?.findings[0]).toMatchObject({ level: "failure", found: "the look at it failed: of glass" });
  expect(reports[0]?.findings[1]).toEqual(ok("whole", "fine"));
});

test("Ctrl-C ends all looks at once, with its reason", async () => {
  const controller = new AbortController();
  const hanging = examine([{ title: "Slow", checks: [check("hangs", () => new Promise(() => {}))] }], {
    signal: controller.signal,
  });
  controller.abort(new Error("interrupted"));
  await expect(hanging).rejects.toThrow("interrupted");
});

test("who waits is told what is still looked at, until nothing is", async () => {
  const waiting: string[][] = [];
  const checks = [check("first", () => ok("first", "")), check("second", () => Bun.sleep(10).then(() => []))];
  await examine([{ title: "A", checks }], { signal: never, onWaiting: (names) => waiting.push([...names]) });
  expect(waiting).toEqual([["second"], []]);
});

test("no secret is told, whichever text it came in, and of two the longer goes first", async () => {
  const clean = withoutSecrets(["hunter", "hunter22"]);
  const run = () => failure("at hunter22", "user:hunter22@host and hunter", "not hunter22");
  const [report] = await examine([{ title: "A", checks: [check("x", run)] }], { signal: never, clean });
  expect(report?.findings).toEqual([failure("at [redacted]", "user:[redacted]@host and [redacted]", "not [redacted]")]);
});
