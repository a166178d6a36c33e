// The run of all looks: each within its time, none in the way of another, and no secret in what is told.
import { expect, test } from "bun:test";
import { examine } from "./examine.ts";
import { failure, type Group, type GroupReport, ok } from "./finding.ts";
import { withoutSecrets } from "./redaction.ts";

const never = new AbortController().signal;
const check = (name: string, run: Group["checks"][number]["run"]) => ({ name, run });

test("reports a check that never ends at its deadline, without delaying the others", async () => {
  const received: GroupReport[] = [];
  const groups: Group[] = [
    { title: "Slow", checks: [check("hangs", () => new Promise(() => {})), check("quick", () => ok("quick", "fine"))] },
    { title: "Other", checks: [check("other", () => [ok("other", "fine")])] },
  ];
  const reports = await examine(groups, { signal: never, deadlineMs: 30, onGroup: (report) => received.push(report) });
  expect(reports.map(({ findings }) => findings.map(({ name, level }) => `${name} ${level}`))).toEqual([
    ["hangs failure", "quick ok"],
    ["other ok"],
  ]);
  expect(reports[0]?.findings[0]?.found).toBe("no answer within 0.03 s");
  expect(received).toEqual(reports);
});

test("aborts a check at its deadline, so that it can release its resources", async () => {
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

test("reports a check that throws as a failure, and omits groups without findings", async () => {
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

test("ends all checks at once with the reason of Ctrl-C", async () => {
  const controller = new AbortController();
  const hanging = examine([{ title: "Slow", checks: [check("hangs", () => new Promise(() => {}))] }], {
    signal: controller.signal,
  });
  controller.abort(new Error("interrupted"));
  await expect(hanging).rejects.toThrow("interrupted");
});

test("reports the pending checks until none is left", async () => {
  const waiting: string[][] = [];
  const checks = [check("first", () => ok("first", "")), check("second", () => Bun.sleep(10).then(() => []))];
  await examine([{ title: "A", checks }], { signal: never, onWaiting: (names) => waiting.push([...names]) });
  expect(waiting).toEqual([["second"], []]);
});

test("removes secrets from all texts, the longer of two first", async () => {
  const clean = withoutSecrets(["hunter", "hunter22"]);
  const run = () => failure("at hunter22", "user:hunter22@host and hunter", "not hunter22");
  const [report] = await examine([{ title: "A", checks: [check("x", run)] }], { signal: never, clean });
  expect(report?.findings).toEqual([failure("at [redacted]", "user:[redacted]@host and [redacted]", "not [redacted]")]);
});
