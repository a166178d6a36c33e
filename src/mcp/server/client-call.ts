// One request of a client of tools, whatever revision it speaks.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { Subscriber } from "./subscriptions.ts";

/** Who sent it, and where. */
export interface ClientRequest {
  readonly principal: Principal;
  readonly requestId: string;
  readonly memoryAccount: MemoryAccount;
  /** The client left. */
  readonly left: Cancellation;
  readonly trace: RequestTrace | undefined;
  /** Name of the server whose address it was sent to; undefined: that of all. */
  readonly only: string | undefined;
  /** Whether schemas of all tools are listed, or a tool by which they are searched for; undefined: by how many there are. */
  readonly listing: "all" | "search" | undefined;
  /** True if the client's `Cache-Control: no-cache` asks to read a list anew from the servers. */
  readonly isFresh?: boolean | undefined;
  /** Tells its client what servers tell beside any request; undefined: it does not listen. */
  readonly follower?: Subscriber | undefined;
}

export interface ClientCall extends ClientRequest {
  /** Arguments as headers, where its tool has them so. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** What its server says of the tool that is called. */
  readonly tool?: JsonObject | undefined;
  /** Capabilities that the client told; empty where it told none. */
  readonly capabilities: JsonObject;
  /** Those that its server asks for and it has not, to be told where the call fails; undefined: nobody is told. */
  readonly lacking?: Set<string> | undefined;
  /** Whether the server may ask back while it works: in later revisions an answer asks, and the client repeats its request. */
  readonly isAskable: boolean;
  /** Ends the work for it. */
  readonly cancellation: Cancellation;
  notify(method: string, params: JsonObject): void;
  /** Only where it is askable. */
  ask(method: string, params: JsonObject): Promise<JsonObject>;
}

/** What a session, or anything else that outlives a request, belongs to: nobody else's requests reach it. */
export function ownerOf({ account, keys: [own], environment }: Principal): string {
  return `${account.id} ${environment} ${own.id}`;
}

/**
 * What is asked, for as long as it is kept beyond its request, which counts for it until it is over. Gives what lets go of
 * it. Throws the refusal of the key that holds too much.
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
