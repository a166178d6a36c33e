// The port through which all calls and lists of MCP servers wait for a slot.
import type { Cancellation } from "../../base/cancellation.ts";
import type { McpServer } from "./mcp-server.ts";

export interface SlotWanted {
  readonly server: Pick<McpServer, "name" | "maxConcurrency" | "timeoutMs">;
  /** The party that takes turns with others at the server: a person or key, or the lists that are fetched for one. */
  readonly party: string;
  /** Ends the wait. Missing: the wait cannot be cancelled. */
  readonly cancellation?: Cancellation | undefined;
}

export interface McpServerSlots {
  /**
   * Resolves with a function that releases the slot once. Rejects with `service_unavailable`, or the reason of the
   * cancellation. A caller with a slot must not wait for another.
   */
  take(wanted: SlotWanted): Promise<() => void>;
}
