// A request of an MCP client, independent of the client's protocol revision.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { Subscriber } from "./subscriptions.ts";

/** The sender of a request, and the endpoint that received it. */
export interface ClientRequest {
  readonly principal: Principal;
  readonly requestId: string;
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client disconnects. */
  readonly clientGone: Cancellation;
  readonly trace: RequestTrace | undefined;
  /**
   * Name of the MCP server if the request came to the endpoint of a single server; undefined at the endpoint of all
   * servers.
   */
  readonly only: string | undefined;
  /** Tells whether all tools are listed, or a search tool instead. Undefined: it depends on the number of tools. */
  readonly listing: "all" | "search" | undefined;
  /** True if lists must be read again from the servers, as requested by `Cache-Control: no-cache`. */
  readonly isFresh?: boolean | undefined;
  /** Forwards servers' notifications to the client; undefined if the client has no open stream. */
  readonly subscriber?: Subscriber | undefined;
}

export interface ClientCall extends ClientRequest {
  /** Call arguments that the tool declares to be sent as headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Definition of the called tool, as its server lists it. */
  readonly tool?: JsonObject | undefined;
  /** Capabilities that the client declared; empty if the client declared none. */
  readonly capabilities: JsonObject;
  /** Collects capabilities that the server requires and the client lacks, for the error message. Optional. */
  readonly lacking?: Set<string> | undefined;
  /**
   * True if the server may send requests to the client during the call. Otherwise the result contains them, and the
   * client repeats its call with the responses.
   */
  readonly isAskable: boolean;
  /** Cancels this call at the server. */
  readonly cancellation: Cancellation;
  notify(method: string, params: JsonObject): void;
  /** Sends a request of the server to the client. Only if `isAskable`. */
  ask(method: string, params: JsonObject): Promise<JsonObject>;
}

/** Returns the owner of a session or another long-lived object. Requests of other owners must not reach it. */
export function ownerOf({ account, keys: [own], environment }: Principal): string {
  return `${account.id} ${environment} ${own.id}`;
}

/**
 * Counts parameters that are kept longer than their request in the key's memory. Returns a function that releases them.
 * Throws if the key's memory is used up.
 */
export function keepAsked({ memoryAccount }: Pick<ClientRequest, "memoryAccount">, params: JsonObject): () => void {
  let bytes = Buffer.byteLength(JSON.stringify(params));
  const refusal = memoryAccount.take("requests", bytes);
  if (refusal) throw refusal;
  return () => {
    memoryAccount.release("requests", bytes);
    bytes = 0;
  };
}
