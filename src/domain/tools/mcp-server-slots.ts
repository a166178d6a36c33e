// The port by which all that MCP servers are asked waits for a place there: calls and lists alike.
import type { Cancellation } from "../../base/cancellation.ts";
import type { McpServer } from "./mcp-server.ts";

export interface SlotWanted {
  readonly server: Pick<McpServer, "name" | "maxConcurrency" | "timeoutMs">;
  /** Who takes turns with others: a person or a key, or the lists that it waits for. */
  readonly party: string;
  /** Ends the wait; left out: nothing does. */
  readonly cancellation?: Cancellation | undefined;
}

export interface McpServerSlots {
  /**
   * Resolves with what gives the place back, once. Rejects with `service_unavailable`, or the reason of the cancellation. Whoever
   * has a place waits for no other one.
   */
  take(wanted: SlotWanted): Promise<() => void>;
}
