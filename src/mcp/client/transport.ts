// Interface of transports: HTTP to one address, or the standard input and output of a process.
import type { Transport } from "@modelcontextprotocol/client";
import type { GatewayError } from "../../base/errors.ts";
import type { ToolAnswer } from "../../domain/tools/client-session.ts";

/** JSON-RPC error code for a revision that the server does not support. */
export const unsupportedRevision = -32_022;

/** A transport that carries the messages of one connection to a server. */
export interface Line {
  readonly transport: Transport;
  /** Returns the transport's own reason for a failure, which is more precise than the SDK's. */
  fault(): GatewayError | undefined;
  /** True for a process that ended without a request from the gateway. */
  readonly endedItself?: boolean;
  /** Ends the session with the server. Never rejects. */
  close(): Promise<void>;
}

/** Thrown if the server has forgotten the session, or refuses requests as if it had. The request had no effect. */
export class SessionLost extends Error {
  override readonly name = "SessionLost";
  /**
   * The outcome to report if a new session is refused in the same way: the server's response, or a fault. Undefined
   * if only the session was at fault.
   */
  readonly otherwise: ToolAnswer | GatewayError | undefined;

  constructor(otherwise?: ToolAnswer | GatewayError) {
    super();
    this.otherwise = otherwise;
  }
}
