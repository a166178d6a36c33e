// The port to what carries messages: HTTP to one address, or the standard input and output of a process.
import type { Transport } from "@modelcontextprotocol/client";
import type { GatewayError } from "../../base/errors.ts";

/** One way to a server, used for one connection. */
export interface Line {
  readonly transport: Transport;
  /** Why it has failed, as far as it knows better than the protocol. */
  fault(): GatewayError | undefined;
  /** It is a process that was not ended from here. */
  readonly endedItself?: boolean;
  /** Takes leave of the server. Never rejects. */
  close(): Promise<void>;
}

/** The session is gone at the server: nothing of the request was done. */
export class SessionLost extends Error {
  override readonly name = "SessionLost";
}
