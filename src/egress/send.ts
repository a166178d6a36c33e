// Sends requests to URLs that users chose: each over its own connection to a checked address, without following
// redirects.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { Http1Client, type OriginTls, originOf } from "../http1/client/client.ts";
import { ClientError, type ClientRequest, type ClientResponse } from "../http1/client/client-contract.ts";
import { addressesOf, EgressRefused, type EgressRules, hostOf, type Resolve } from "./addresses.ts";

export interface EgressOptions {
  rules: EgressRules;
  resolve: Resolve;
  /**
   * Timeout of the connection, of the response head, and of each silence in the body. It does not bound the
   * whole exchange.
   */
  timeoutMs: number;
  /** Certificates (PEM) to trust instead of the system's, for tests. */
  ca?: string;
}

export interface EgressAnswer extends Omit<ClientResponse, "body"> {
  body: BodySource;
  /** Closes the connection. The caller calls this function once, even after the body was read to its end. */
  close(): void;
}

const maxAddresses = 3;

/**
 * Sends a request to the first address that accepts a connection. Rejects with an EgressRefused, a ClientError,
 * or the reason of the cancellation. The cancellation applies until the response head arrives.
 */
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

/** Rejects on cancellation without waiting for the DNS query, which cannot be stopped. */
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

/** Returns a fixed code for an error of `sendEgress` or of its response body. */
export function egressFault(error: unknown): string {
  if (error instanceof EgressRefused) return error.message;
  if (!(error instanceof ClientError)) return "not_sent";
  if (error.fault === "first_byte_timeout" || error.fault === "idle_timeout") return "timeout";
  if (error.fault === "connect") return "not_connected";
  return error.fault === "malformed" ? "no_http" : "broke_off";
}
