// Runs all checks in parallel, each with a deadline, and returns the groups in order.
import { StartError } from "../base/errors.ts";
import { type Check, type Finding, failure, type Group, type GroupReport } from "./finding.ts";

export interface ExamineOptions {
  signal: AbortSignal;
  /** Called with each group after its checks and those of all earlier groups have ended. */
  onGroup?: (report: GroupReport) => void;
  /** Called with the names of the running checks, whenever they change. */
  onWaiting?: (names: readonly string[]) => void;
  /** Milliseconds for checks that have no deadline of their own. */
  deadlineMs?: number;
  /** Called with each text before it is shown, for example to remove secrets. */
  clean?: (text: string) => string;
}

export const defaultDeadlineMs = 6_000;

/** Runs the checks of all groups and returns the groups with findings. Rejects only with the reason of `signal`. */
export async function examine(groups: readonly Group[], options: ExamineOptions): Promise<GroupReport[]> {
  const { signal, onGroup, onWaiting, clean = (text) => text } = options;
  const waiting = new Set(groups.flatMap(({ checks }) => checks));
  const done = (check: Check) => {
    waiting.delete(check);
    onWaiting?.([...waiting].map(({ name }) => name));
  };
  const underWay = groups.map(async ({ title, checks }) => {
    const found = await Promise.all(checks.map((check) => runCheck(check, options).finally(() => done(check))));
    return { title, findings: found.flat().map((finding) => cleaned(finding, clean)) };
  });
  // The loop below awaits each group. Until then, the rejection of a group must not count as unhandled.
  for (const group of underWay) group.catch(() => {});
  const reports: GroupReport[] = [];
  for (const group of underWay) {
    const report = await group;
    signal.throwIfAborted();
    if (report.findings.length === 0) continue;
    reports.push(report);
    onGroup?.(report);
  }
  return reports;
}

/**
 * Returns the findings of a check. If it does not end in time, returns a finding that says so. Rejects only with the
 * reason of `signal`.
 */
export async function runCheck(
  check: Check,
  options: Pick<ExamineOptions, "signal" | "deadlineMs">,
): Promise<readonly Finding[]> {
  const { signal, deadlineMs = defaultDeadlineMs } = options;
  const ownMs = check.deadlineMs ?? deadlineMs;
  const late = new AbortController();
  const { promise: over, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const timer = setTimeout(() => {
    late.abort(new DOMException("too late", "TimeoutError"));
    reject(late.signal.reason);
  }, ownMs);
  try {
    signal.throwIfAborted();
    // The check runs in a later microtask, so that synchronous work in one check does not delay the start of others.
    await Promise.resolve();
    const found = await Promise.race([check.run(AbortSignal.any([signal, late.signal])), over]);
    return [found].flat().filter((finding) => finding !== undefined);
  } catch (error) {
    signal.throwIfAborted();
    if (late.signal.aborted) return [notInTime(check.name, ownMs)];
    return [failure(check.name, `the look at it failed: ${reasonOf(error)}`, "See what the message says.")];
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function notInTime(name: string, deadlineMs: number): Finding {
  return failure(
    name,
    `no answer within ${deadlineMs / 1000} s`,
    "See whether it hangs: the network, a firewall that drops packets, a disk or a server that does not answer.",
  );
}

/** Returns the reason of an error in one line. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof StartError) return withoutStop(error.message);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  const text = withoutStop(error.message.split("\n")[0] ?? "");
  if (code === undefined || text.includes(code)) return text || error.name;
  return text === "" ? code : `${text} (${code})`;
}

export function withoutStop(text: string): string {
  return text.replace(/(?<![.\s])[.\s]+$/, "");
}

export function cleaned(finding: Finding, clean: (text: string) => string): Finding {
  const { remedy } = finding;
  return {
    ...finding,
    name: clean(finding.name),
    found: clean(finding.found),
    ...(remedy === undefined ? {} : { remedy: clean(remedy) }),
  };
}

/** Returns a function that starts `work` at its first call and returns the same promise to every caller. */
export function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let begun: Promise<Result> | undefined;
  return () => {
    begun ??= work();
    // Each caller gets the rejection. If nobody awaits the promise, the rejection must not count as unhandled.
    begun.catch(() => {});
    return begun;
  };
}
