// The interface for logging, tracing and counting a request without an HTTP exchange.
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { GatewayError } from "../base/errors.ts";
import type { LogFields } from "../base/log.ts";
import type { Principal } from "../domain/principal.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";

export type MessageKind = "websocket" | "background";

/**
 * A request without its own HTTP exchange: a message over a WebSocket, or a response in the background. It appears in
 * the log, in traces and in metrics like any other request. Exactly one of its last three methods is called, once.
 */
export interface MessageRequest {
  readonly requestId: string;
  readonly line: Record<string, LogFields[string]>;
  /** The trace, once the principal is known. */
  readonly trace: RequestTrace | undefined;
  isOnLedger: boolean;
  /**
   * Names the principal and returns the account of its bytes. Throws `rate_limit_exceeded` if the key has too many
   * requests open.
   */
  by(principal: Principal): MemoryAccount;
  /** Counts buffered bytes until the request ends, or returns the refusal. */
  hold(bytes: number): GatewayError | undefined;
  /** Returns milliseconds since the arrival of the request. */
  durationNow(): number;
  /** Ends the request. `error` is the error that was sent. */
  finish(error?: GatewayError): void;
  /** Called instead of `finish` if the client left before the answer. */
  clientLeft(): void;
  /** Called instead of `finish` if the outer request reports the outcome. */
  leave(): void;
}
