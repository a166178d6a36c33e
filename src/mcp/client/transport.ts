// Interface of transports: HTTP to one address, or the standard input and output of a process.
import type { Transport } from "@modelcontextprotocol/client";
import type { GatewayError } from "../../base/errors.ts";
import type { ToolAnswer } from "../../domain/tools/client-session.ts";

/** JSON-RPC error code for a revision that the server does not support. */
export const unsupportedRevision = -32_022;

/** A connection's transport to an MCP server. */
export interface Line {
  readonly transport: Transport;
  /** Returns the transport's own error, which is more precise than the SDK's; undefined if there is none. */
  fault(): GatewayError | undefined;
  /** True if the process ended on its own. */
  readonly endedItself?: boolean;
  /** Ends the session with the server. Never rejects. */
  close(): Promise<void>;
}

/** The server has forgotten the session or seems to have. The request had no effect. */
export class SessionLost extends Error {
  override readonly name = "SessionLost";
  /**
   * The result to use if a new session is refused in the same way: the server's response or an error. Undefined if the
   * session was certainly lost.
   */
  readonly otherwise: ToolAnswer | GatewayError | undefined;

  constructor(otherwise?: ToolAnswer | GatewayError) {
    super();
    this.otherwise = otherwise;
  }
}
