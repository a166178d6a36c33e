// The port by which a request that is no HTTP exchange of its own is logged, traced and counted.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { GatewayError } from "../base/errors.ts";
import type { LogFields } from "../base/log.ts";
import type { Principal } from "../domain/principal.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";

export type MessageKind = "websocket" | "background";

/**
 * A request without an HTTP exchange of its own: a message over a WebSocket, or a response in the background. It appears in
 * the log, in traces and in metrics like any other request. Exactly one of its last three methods is called, once.
 */
export interface MessageRequest {
  readonly requestId: string;
  readonly line: Record<string, LogFields[string]>;
  /** The trace, once the principal is known. */
  readonly trace: RequestTrace | undefined;
  isOnLedger: boolean;
  /** Names the principal and returns the account of its bytes. Throws `rate_limit_exceeded` if the key has too many requests open. */
  by(principal: Principal): MemoryAccount;
  /** Counts bytes as held until the request ends, or returns the refusal. */
  hold(bytes: number): GatewayError | undefined;
  /** Milliseconds since the request came. */
  durationNow(): number;
  /** `error`: the error that was the answer. */
  finish(error?: GatewayError): void;
  /** Instead of `finish`: the client left before the answer. */
  clientLeft(): void;
  /** Instead of `finish`: the request that this one came with reports the outcome. */
  leave(): void;
}
