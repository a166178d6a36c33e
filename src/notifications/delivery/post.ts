// Posts to a webhook receiver over its own connection to a checked address, without following redirects.

import { Cancellation } from "../../base/cancellation.ts";
import { type Clock, elapsedMs } from "../../base/clock.ts";
import { longLived } from "../../base/long-lived.ts";
import { EgressRefused } from "../../egress/addresses.ts";
import { type EgressOptions, egressFault, sendEgress } from "../../egress/send.ts";

export interface PostOptions extends Pick<EgressOptions, "rules" | "resolve" | "ca"> {
  clock: Pick<Clock, "monotonicMs">;
  /** Timeout of the whole attempt. Default 15,000. */
  timeoutMs?: number;
  /** Cancels the attempt when the deliverer stops. */
  stop?: Cancellation;
}

export interface Posted {
  /** Status of the response; null if there was none. */
  status: number | null;
  /** The reason why there was no response, as one of a few fixed words; null if there was one. */
  error: string | null;
  /** Seconds after which the receiver accepts another attempt. */
  retryAfterSeconds: number | undefined;
  durationMs: number;
}

const defaultTimeoutMs = longLived.webhookDelivery.idleMs;
const maxRetryAfterSeconds = 86_400;

/** Posts one attempt. Never rejects. Reads only the head of the response, because its body is shown to no one. */
export async function post(
  href: string,
  { headers, body }: { headers: Record<string, string>; body: string },
  options: PostOptions,
): Promise<Posted> {
  const { clock, timeoutMs = defaultTimeoutMs } = options;
  const startMs = clock.monotonicMs();
  const cancellation = new Cancellation();
  const timer = setTimeout(() => cancellation.cancel(new EgressRefused("timeout")), timeoutMs);
  const stopped = () => cancellation.cancel(new EgressRefused("stopped"));
  options.stop?.onCancel(stopped);
  try {
    const answer = await sendEgress(
      new URL(href),
      { method: "POST", headers, body },
      { ...options, timeoutMs },
      cancellation,
    );
    answer.close();
    const durationMs = Math.round(elapsedMs(clock, startMs));
    return { status: answer.status, error: null, retryAfterSeconds: retryAfter(answer.headers), durationMs };
  } catch (error) {
    const durationMs = Math.round(elapsedMs(clock, startMs));
    return { status: null, error: egressFault(error), retryAfterSeconds: undefined, durationMs };
  } finally {
    clearTimeout(timer);
    options.stop?.off(stopped);
  }
}

function retryAfter(headers: { get(name: string): string | null | undefined }): number | undefined {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), maxRetryAfterSeconds) : undefined;
}
