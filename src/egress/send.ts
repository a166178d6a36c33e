// Requests to addresses that others chose: each over a connection of its own to an address that was checked, following nothing.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { Http1Client, type OriginTls, originOf } from "../http1/client/client.ts";
import { ClientError, type ClientRequest, type ClientResponse } from "../http1/client/client-contract.ts";
import { addressesOf, EgressRefused, type EgressRules, hostOf, type Resolve } from "./addresses.ts";

export interface EgressOptions {
  rules: EgressRules;
  resolve: Resolve;
  /** For the connection, the head of the answer, and each silence in its body; what bounds all of it is the cancellation. */
  timeoutMs: number;
  /** Certificates (PEM) to trust instead of the well-known ones; of tests. */
  ca?: string;
}

export interface EgressAnswer extends Omit<ClientResponse, "body"> {
  body: BodySource;
  /** To be called once, also where the body was read to its end: with it ends whatever else the server would go on to say. */
  close(): void;
}

/** The most addresses of a name that are tried. */
const maxAddresses = 3;

/** Rejects with an EgressRefused, a ClientError, or the reason of the cancellation, which holds until the head is here. */
export async function sendEgress(
  url: URL,
  request: Omit<ClientRequest, "path">,
  { rules, resolve, ca, timeoutMs }: EgressOptions,
  cancellation: Cancellation,
): Promise<EgressAnswer> {
  const addresses = await orCancelled(addressesOf(url, rules, resolve), cancellation);
  const origin = originOf(url);
  const tls: OriginTls | undefined = origin.tls && { serverName: hostOf(url), ...(ca === undefined ? {} : { ca }) };
  const tried = addresses.slice(0, maxAddresses);
  for (const [i, address] of tried.entries()) {
    const client = new Http1Client(
      { ...origin, address, ...(tls ? { tls } : {}) },
      { maxConnections: 1, connectTimeoutMs: timeoutMs },
    );
    try {
      const timeouts = { firstByteTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs };
      const sent = { ...request, path: `${url.pathname}${url.search}` };
      const { status, headers, body } = await client.send(sent, timeouts, cancellation);
      return { status, headers, body, close: () => client.close() };
    } catch (error) {
      client.close();
      if (i + 1 >= tried.length || !(error instanceof ClientError) || error.fault !== "connect") throw error;
    }
  }
  throw new EgressRefused("name_not_found");
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

/** One of a few words, for whatever `sendEgress` and the body of its answer reject with. */
export function egressFault(error: unknown): string {
  if (error instanceof EgressRefused) return error.message;
  if (!(error instanceof ClientError)) return "not_sent";
  if (error.fault === "first_byte_timeout" || error.fault === "idle_timeout") return "timeout";
  if (error.fault === "connect") return "not_connected";
  return error.fault === "malformed" ? "no_http" : "broke_off";
}
