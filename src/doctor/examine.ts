// Runs all looks side by side, each within its time, and hands over one group after the other in order.
import { StartError } from "../base/errors.ts";
import { type Check, type Finding, failure, type Group, type GroupReport } from "./finding.ts";

export interface ExamineOptions {
  signal: AbortSignal;
  /** Told of each group as soon as it and all before it are done. */
  onGroup?: (report: GroupReport) => void;
  /** Told of the names of what is still being looked at, whenever that changes. */
  onWaiting?: (names: readonly string[]) => void;
  /** The deadline of a check that does not name its own. */
  deadlineMs?: number;
  /** Makes a text fit to be shown. */
  clean?: (text: string) => string;
}

export const defaultDeadlineMs = 6_000;

/** Rejects with the reason of `signal`, and for nothing else. Groups in which nothing was found are left out. */
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
  // Each is waited for in its turn below; until then its failure is nobody's.
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

/** Its findings, or that it did not end in time. Rejects with the reason of `signal` alone. */
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
    // A turn later, so that what one does at once does not keep the others from beginning.
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

/** Why something failed, in one line. */
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

/** The same work for whoever asks, begun when the first does. */
export function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let begun: Promise<Result> | undefined;
  return () => {
    begun ??= work();
    // Each caller gets the rejection; until one asks, the failure is no unhandled one.
    begun.catch(() => {});
    return begun;
  };
}
