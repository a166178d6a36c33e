// The port to what carries messages: HTTP to one address, or the standard input and output of a process.
import type { Transport } from "@modelcontextprotocol/client";
import type { GatewayError } from "../../base/errors.ts";
import type { ToolAnswer } from "../../domain/tools/client-session.ts";

/** One way to a server, used for one connection. */
/** JSON-RPC: the server does not speak the revision that it was asked in. */
export const unsupportedRevision = -32_022;

export interface Line {
  readonly transport: Transport;
  /** Why it has failed, as far as it knows better than the protocol. */
  fault(): GatewayError | undefined;
  /** It is a process that was not ended from here. */
  readonly endedItself?: boolean;
  /** Takes leave of the server. Never rejects. */
  close(): Promise<void>;
}

/** The server has forgotten the session, or refuses requests as if it had: nothing of the request was done. */
export class SessionLost extends Error {
  override readonly name = "SessionLost";
  /** What to report if a new session is refused likewise: the server's answer, or a fault. Undefined: only its sessions are at fault. */
  readonly otherwise: ToolAnswer | GatewayError | undefined;

  constructor(otherwise?: ToolAnswer | GatewayError) {
    super();
    this.otherwise = otherwise;
  }
}
