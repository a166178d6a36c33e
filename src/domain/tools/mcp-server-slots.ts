// Slots for requests to MCP servers. Every tool call and every list waits for a slot first.
import type { Cancellation } from "../../base/cancellation.ts";
import type { McpServer } from "./mcp-server.ts";

export interface SlotWanted {
  readonly server: Pick<McpServer, "name" | "maxConcurrency" | "timeoutMs">;
  /**
   * The party that waits. Callers take turns by this id: a person, a key, or the lists that are fetched for one of
   * them.
   */
  readonly party: string;
  /** Ends the wait. If missing, the wait cannot be cancelled. */
  readonly cancellation?: Cancellation | undefined;
}

export interface McpServerSlots {
  /**
   * Waits for a slot. Resolves with a function that releases it. Rejects with `service_unavailable`, or with the reason
   * of the cancellation. A caller that has a slot must not wait for another.
   */
  take(wanted: SlotWanted): Promise<() => void>;
}
