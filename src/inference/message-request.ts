// The interface for logging, tracing and counting a request without an HTTP exchange.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { GatewayError } from "../base/errors.ts";
import type { LogFields } from "../base/log.ts";
import type { Principal } from "../domain/principal.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";

export type MessageKind = "websocket" | "background";

/**
 * A request without an HTTP exchange of its own: a WebSocket message, or a background response. It appears in the log,
 * in traces and in metrics like any other request. Exactly one of its last three methods must be called, once.
 */
export interface MessageRequest {
  readonly requestId: string;
  readonly line: Record<string, LogFields[string]>;
  /** The trace of the request. Undefined until `by` names the principal. */
  readonly trace: RequestTrace | undefined;
  isOnLedger: boolean;
  /**
   * Sets the principal and returns the memory account for its buffered bytes. Throws `rate_limit_exceeded` if the key
   * has too many open requests.
   */
  by(principal: Principal): MemoryAccount;
  /** Counts buffered bytes until the request ends. Returns an error if they exceed a limit. */
  hold(bytes: number): GatewayError | undefined;
  /** Returns milliseconds since the arrival of the request. */
  durationNow(): number;
  /** Ends the request. `error` is the error that the client received. */
  finish(error?: GatewayError): void;
  /** Called instead of `finish` if the client left before the answer. */
  clientLeft(): void;
  /** Called instead of `finish` if another request reports the outcome. */
  leave(): void;
}
