// Posts to a receiver: over a connection of its own to an address that was checked, without following anything.
import { Cancellation } from "../../base/cancellation.ts";
import { type Clock, elapsedMs } from "../../base/clock.ts";
import { Http1Client, type OriginTls, originOf } from "../../http1/client/client.ts";
import { ClientError } from "../../http1/client/client-contract.ts";
import { addressesOf, hostOf, ReceiverRefused, type ReceiverRules, type Resolve } from "./receiver.ts";

export interface PostOptions {
  rules: ReceiverRules;
  resolve: Resolve;
  clock: Pick<Clock, "monotonicMs">;
  /** All of an attempt. Default 15,000. */
  timeoutMs?: number;
  /** Ends the attempt where whoever makes it stops. */
  stop?: Cancellation;
  /** Certificates (PEM) to trust instead of the well-known ones; of tests. */
  ca?: string;
}

export interface Posted {
  /** The status of the answer; null: there was none. */
  status: number | null;
  /** One of a few words where there is no status. */
  error: string | null;
  /** Seconds that the receiver asks to be left alone. */
  retryAfterSeconds: number | undefined;
  durationMs: number;
}

const usualTimeoutMs = 15_000;
/** The most addresses of a name that are tried. */
const mostAddresses = 3;
const longestRetryAfterSeconds = 86_400;

/** Never rejects. Of the answer only the head is read: whatever a receiver says is shown to nobody. */
export async function post(
  href: string,
  { headers, body }: { headers: Record<string, string>; body: string },
  options: PostOptions,
): Promise<Posted> {
  const { clock, timeoutMs = usualTimeoutMs } = options;
  const startMs = clock.monotonicMs();
  const cancellation = new Cancellation();
  const timer = setTimeout(() => cancellation.cancel(new ReceiverRefused("timeout")), timeoutMs);
  const stopped = () => cancellation.cancel(new ReceiverRefused("stopped"));
  options.stop?.onCancel(stopped);
  try {
    const answer = await sendTo(new URL(href), { headers, body }, options, cancellation);
    return { ...answer, error: null, durationMs: Math.round(elapsedMs(clock, startMs)) };
  } catch (error) {
    const durationMs = Math.round(elapsedMs(clock, startMs));
    return { status: null, error: wordOf(error), retryAfterSeconds: undefined, durationMs };
  } finally {
    clearTimeout(timer);
    options.stop?.off(stopped);
  }
}

async function sendTo(
  url: URL,
  request: { headers: Record<string, string>; body: string },
  { rules, resolve, ca, timeoutMs = usualTimeoutMs }: PostOptions,
  cancellation: Cancellation,
): Promise<Pick<Posted, "status" | "retryAfterSeconds">> {
  const addresses = await orCancelled(addressesOf(url, rules, resolve), cancellation);
  const origin = originOf(url);
  const tls: OriginTls | undefined = origin.tls && { serverName: hostOf(url), ...(ca === undefined ? {} : { ca }) };
  for (const [i, address] of addresses.slice(0, mostAddresses).entries()) {
    const client = new Http1Client(
      { ...origin, address, ...(tls ? { tls } : {}) },
      { maxConnections: 1, connectTimeoutMs: timeoutMs },
    );
    try {
      const timeouts = { firstByteTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs };
      const sent = {
        method: "POST",
        path: `${url.pathname}${url.search}`,
        headers: request.headers,
        body: request.body,
      };
      const { status, headers } = await client.send(sent, timeouts, cancellation);
      return { status, retryAfterSeconds: retryAfter(headers) };
    } catch (error) {
      const isLast = i + 1 >= Math.min(addresses.length, mostAddresses);
      if (isLast || !(error instanceof ClientError) || error.fault !== "connect") throw error;
    } finally {
      // With it ends whatever else the receiver would go on to say.
      client.close();
    }
  }
  throw new ReceiverRefused("name_not_found");
}

/** A look-up cannot be stopped, but need not be waited for. */
async function orCancelled<Value>(work: Promise<Value>, cancellation: Cancellation): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const listener = () => reject(cancellation.reason);
  cancellation.onCancel(listener);
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancellation.off(listener);
  }
}

function wordOf(error: unknown): string {
  if (error instanceof ReceiverRefused) return error.message;
  if (!(error instanceof ClientError)) return "not_sent";
  if (error.fault === "first_byte_timeout" || error.fault === "idle_timeout") return "timeout";
  if (error.fault === "connect") return "not_connected";
  return error.fault === "malformed" ? "no_http" : "broke_off";
}

function retryAfter(headers: { get(name: string): string | null | undefined }): number | undefined {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), longestRetryAfterSeconds) : undefined;
}
