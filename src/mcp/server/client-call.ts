// One request of an MCP client, whatever revision the client speaks.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { Subscriber } from "./subscriptions.ts";

/** Sender of a request, and the address that it was sent to. */
export interface ClientRequest {
  readonly principal: Principal;
  readonly requestId: string;
  readonly memoryAccount: MemoryAccount;
  /** Cancelled when the client disconnects. */
  readonly clientGone: Cancellation;
  readonly trace: RequestTrace | undefined;
  /** Name of the server whose address received the request; undefined for the address of all servers. */
  readonly only: string | undefined;
  /**
   * Whether all tool schemas are listed, or a search tool in their place. If undefined, the number of tools decides.
   */
  readonly listing: "all" | "search" | undefined;
  /** True if the client's `Cache-Control: no-cache` asks to read a list anew from the servers. */
  readonly isFresh?: boolean | undefined;
  /** Forwards notifications of servers to the client; undefined if the client has no open stream. */
  readonly subscriber?: Subscriber | undefined;
}

export interface ClientCall extends ClientRequest {
  /** Arguments to send as headers, if the tool declares such parameters. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Definition of the called tool, as its server lists it. */
  readonly tool?: JsonObject | undefined;
  /** Capabilities that the client declared; empty if the client declared none. */
  readonly capabilities: JsonObject;
  /**
   * Collects capabilities that the server needs and the client lacks, for the error of a failed call; undefined: none
   * are collected.
   */
  readonly lacking?: Set<string> | undefined;
  /**
   * True if the server may send requests to the client during the call. In later revisions the result contains these
   * requests, and the client repeats its call.
   */
  readonly isAskable: boolean;
  /** Cancels the work for this call. */
  readonly cancellation: Cancellation;
  notify(method: string, params: JsonObject): void;
  /** Sends a request to the client. Requires `isAskable`. */
  ask(method: string, params: JsonObject): Promise<JsonObject>;
}

/**
 * Returns the owner of a session, or of another object that outlives its request. Requests of other owners cannot reach
 * the object.
 */
export function ownerOf({ account, keys: [own], environment }: Principal): string {
  return `${account.id} ${environment} ${own.id}`;
}

/**
 * Charges the parameters that outlive their request to the key's memory. Returns the function that releases them.
 * Throws if the key uses too much memory.
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
