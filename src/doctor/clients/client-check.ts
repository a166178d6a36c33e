// A test of the API's wire format. Sends one request and reports the faults of the answer.
import { type Check, type Finding, failure, ok, skipped } from "../finding.ts";
import { errorBody, faultsOf, type Model } from "./shapes.ts";
import { RateLimited, type Wire, type WireAnswer } from "./wire.ts";

export interface Surroundings {
  wire: Wire;
  /** The models to test with, for chat and for embeddings. Undefined if there is none. */
  chat: Model | undefined;
  embeddings: Model | undefined;
  /** True if the credential is an API key. A key may also be sent as X-API-Key. */
  isKey: boolean;
}

export interface Verdict {
  /** The observation of a successful test, or the reason for skipping it. */
  seen: string;
  /** The faults, each in a few words. Empty if the answer is as SDKs expect it. */
  wrong: readonly string[];
  isSkipped?: boolean;
  remedy?: string;
}

export interface ClientCheck {
  name: string;
  /** The request in a person's notation, for the report. */
  sent: string;
  run(signal: AbortSignal): Promise<Verdict>;
}

const deadlineMs = 60_000;
const defaultRemedy =
  "SDKs stumble over it. See whether a proxy in front changes answers; if not, and the model server is not the cause, it is a fault of Headrace.";
const maxWrong = 4;

export function asCheck({ name, sent, run }: ClientCheck): Check {
  return {
    name,
    deadlineMs,
    async run(signal): Promise<Finding> {
      try {
        return { ...findingOf(name, await run(signal)), sent };
      } catch (error) {
        if (!(error instanceof RateLimited)) throw error;
        return { ...skipped(name, "the rate limit of this key is reached; test again with another"), sent };
      }
    },
  };
}

function findingOf(name: string, { seen, wrong, isSkipped, remedy = defaultRemedy }: Verdict): Finding {
  if (wrong.length > 0) return failure(name, wrong.slice(0, maxWrong).join("; "), remedy);
  return isSkipped ? skipped(name, seen) : ok(name, seen);
}

/** Checks status and content type. Without these, checking the rest of an answer makes no sense. */
export function statusFaults(
  { status, headers, text }: WireAnswer,
  wanted: number,
  type = "application/json",
): string[] {
  const found = headers.get("content-type") ?? "none";
  return [
    ...(status === wanted ? [] : [`status ${status} instead of ${wanted}${messageOf(text)}`]),
    ...(found.split(";")[0]?.trim().toLowerCase() === type ? [] : [`content-type is ${found} instead of ${type}`]),
  ];
}

function messageOf(text: string): string {
  const message = /"message"\s*:\s*"((?:[^"\\]|\\.){1,160})/.exec(text)?.[1];
  return message === undefined ? "" : ` (${message})`;
}

const durations = /^(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$/;

/** Checks the headers that SDKs read in every answer. */
export function headerFaults({ headers }: Pick<WireAnswer, "headers">): string[] {
  const faults: string[] = [];
  if (!headers.get("x-request-id")) faults.push("x-request-id is missing");
  const shouldRetry = headers.get("x-should-retry");
  if (shouldRetry !== null && !/^(true|false)$/.test(shouldRetry)) faults.push(`x-should-retry is ${shouldRetry}`);
  for (const name of ["retry-after", "retry-after-ms", "openai-processing-ms"]) {
    const value = headers.get(name);
    if (value !== null && !/^\d+(\.\d+)?$/.test(value)) faults.push(`${name} is no number: ${value}`);
  }
  for (const kind of ["requests", "tokens"]) {
    for (const part of ["limit", "remaining"]) {
      const value = headers.get(`x-ratelimit-${part}-${kind}`);
      if (value !== null && !/^\d+$/.test(value))
        faults.push(`x-ratelimit-${part}-${kind} is no whole number: ${value}`);
    }
    const reset = headers.get(`x-ratelimit-reset-${kind}`);
    if (reset !== null && (reset === "" || !durations.test(reset)))
      faults.push(`x-ratelimit-reset-${kind} is no duration such as 6m0s: ${reset}`);
  }
  return faults;
}

/** Checks an error answer, which SDKs turn into an exception. */
export function errorFaults(answer: WireAnswer, wanted: number, code?: string): string[] {
  const faults = [...statusFaults(answer, wanted), ...faultsOf(errorBody, answer.json), ...headerFaults(answer)];
  const found = (answer.json as { error?: { code?: unknown } } | undefined)?.error?.code;
  if (faults.length === 0 && code !== undefined && found !== code)
    faults.push(`code is ${String(found)} instead of ${code}`);
  return faults;
}

/** Returns a "skipped" verdict if the model server lacks an optional feature and says so with a correct error. */
export function refusedAsOptional(answer: WireAnswer, what: string): Verdict | undefined {
  if (answer.status !== 400 && answer.status !== 404 && answer.status !== 422 && answer.status !== 501)
    return undefined;
  if (faultsOf(errorBody, answer.json).length > 0) return undefined;
  return { seen: `the model server has no ${what} for this model`, wrong: [], isSkipped: true };
}
