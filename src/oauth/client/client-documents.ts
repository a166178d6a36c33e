// Fetches Client ID Metadata Documents (draft-ietf-oauth-client-id-metadata-document). Anybody can choose their URLs,
// so fetches are restricted.
import { readAll } from "../../base/bytes/body-source.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { PublishedApp } from "../../domain/people/app.ts";
import { type DescribedClient, outsideApp } from "../../domain/people/outside-client.ts";
import { EgressRefused } from "../../egress/addresses.ts";
import { type EgressAnswer, type EgressOptions, egressFault, sendEgress } from "../../egress/send.ts";
import { LruMap } from "../../policy/lru-map.ts";
import { Turns } from "../../policy/turns.ts";
import type { PageFault } from "../authorize/check.ts";
import { describedClient } from "./client-metadata.ts";
import type { ClientThrottle } from "./client-throttle.ts";
import { appIdOf } from "./document-url.ts";

export interface ClientDocumentsOptions extends Omit<EgressOptions, "timeoutMs"> {
  /** Hosts whose client documents are fetched; null means all. */
  hosts: readonly string[] | null;
  clientThrottle: Pick<ClientThrottle, "requireDocument">;
  /** The environment of clients with a document. */
  environment: Environment;
  clock: Pick<Clock, "monotonicMs" | "nowSeconds">;
  /** The time limit of the whole fetch, in milliseconds. Default 5,000. */
  timeoutMs?: number;
}

const defaultTimeoutMs = 5_000;
const maxDocumentLength = 65_536;
const maxKept = 200;
const atOnce = 8;
const maxWaiting = 64;
const [minFreshMs, defaultFreshMs, maxFreshMs] = [60_000, 300_000, 86_400_000];
/** Milliseconds for which a failed fetch is cached. */
const failureMs = 10_000;

type Found = DescribedClient | PageFault;

export class ClientDocuments {
  readonly #options: ClientDocumentsOptions;
  readonly #kept = new LruMap<{ found: Found; untilMs: number }>(maxKept);
  readonly #fetching = new Map<string, Promise<Found>>();
  readonly #turns = new Turns(atOnce, maxWaiting);

  constructor(options: ClientDocumentsOptions) {
    this.#options = options;
  }

  /**
   * Returns the client that the document describes. `url` must satisfy `isDocumentUrl`. Throws `rate_limit_exceeded` if
   * `clientAddress` or all clients together cause too many fetches, and `service_unavailable` if too many run now.
   */
  async find(url: string, clientAddress: string): Promise<PublishedApp | PageFault> {
    const found = await this.#find(url, clientAddress);
    if ("reason" in found) return found;
    const { environment, clock } = this.#options;
    const client = { ...found, id: appIdOf(url), documentUrl: url, suspendedBy: null, createdAt: clock.nowSeconds() };
    return outsideApp(client, environment);
  }

  async #find(url: string, clientAddress: string): Promise<Found> {
    const { hosts, clock } = this.#options;
    if (hosts && !hosts.includes(new URL(url).hostname)) {
      return fault("host_not_allowed", "its host is none of those that this server lets describe clients.");
    }
    const kept = this.#kept.get(url);
    if (kept && kept.untilMs > clock.monotonicMs()) return kept.found;
    const under = this.#fetching.get(url);
    if (under) return under;
    const fetching = this.#admitted(url, clientAddress).finally(() => this.#fetching.delete(url));
    this.#fetching.set(url, fetching);
    return fetching;
  }

  async #admitted(url: string, clientAddress: string): Promise<Found> {
    await this.#options.clientThrottle.requireDocument(clientAddress);
    return this.#turns.runOrRefuse(() => this.#fetch(url), "Too many documents of clients are fetched at the moment.");
  }

  /** Fetches a document. Never rejects. */
  async #fetch(url: string): Promise<Found> {
    const { clock, timeoutMs = defaultTimeoutMs } = this.#options;
    const cancellation = new Cancellation();
    const timer = setTimeout(() => cancellation.cancel(new EgressRefused("timeout")), timeoutMs);
    let answer: EgressAnswer | undefined;
    let found: Found;
    let freshMs = failureMs;
    try {
      // The request reveals nothing about this server or the caller.
      const request = { method: "GET", headers: { accept: "application/json", "accept-encoding": "identity" } };
      answer = await sendEgress(new URL(url), request, { ...this.#options, timeoutMs }, cancellation);
      found = await read(url, answer, cancellation);
      if (!("reason" in found)) freshMs = freshFor(answer.headers.get("cache-control") ?? "");
    } catch (error) {
      const word = error instanceof Error && error.name === "BodyTooLongError" ? "too_long" : egressFault(error);
      found = fault(
        word,
        "it could not be fetched: it has to be answered at once, with status 200 and a JSON of 64 KB at most. Where this server does not reach the internet, its operator sets oauth.client_documents to off: clients then register themselves.",
      );
    } finally {
      clearTimeout(timer);
      answer?.close();
    }
    this.#kept.set(url, { found, untilMs: clock.monotonicMs() + freshMs });
    return found;
  }
}

async function read(url: string, { status, headers, body }: EgressAnswer, cancellation: Cancellation): Promise<Found> {
  if (status !== 200) return fault(`status_${status}`, `it is answered with ${status}; redirects are not followed.`);
  const type = headers.get("content-type") ?? "";
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) {
    return fault("no_json", "it is no JSON: its content type has to be application/json.");
  }
  const bytes = await readAll(body, maxDocumentLength, cancellation, () => {});
  const metadata = parsed(bytes.view);
  if (!metadata) return fault("no_json", "it is no JSON object.");
  if (metadata["client_id"] !== url) return fault("other_client", "its client_id is not the address where it is.");
  if (metadata["client_secret"] !== undefined || metadata["client_secret_expires_at"] !== undefined) {
    return fault("has_secret", "it has a client_secret, which everybody can read there.");
  }
  const method = metadata["token_endpoint_auth_method"] ?? "none";
  if (method !== "none") return fault("method", "its token_endpoint_auth_method has to be none, with PKCE.");
  const described = describedClient(metadata);
  return "fault" in described ? fault("metadata", described.description) : described;
}

function parsed(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns for how long the document may be cached, as its server says (RFC 9111, 5.2.2), within our limits. The minimum
 * spans the pages of one sign-in.
 */
function freshFor(cacheControl: string): number {
  if (/\bno-(?:store|cache)\b/i.test(cacheControl)) return minFreshMs;
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(cacheControl)?.[1];
  return seconds === undefined ? defaultFreshMs : Math.min(maxFreshMs, Math.max(minFreshMs, Number(seconds) * 1_000));
}

/**
 * Returns an error without facts about the internal network: `message` states the requirement, `reason` is for the log.
 */
function fault(reason: string, message: string): PageFault {
  return {
    message: `client_id is the address of a document that does not do: ${message}`,
    reason: `document_${reason}`,
  };
}
