// Stored arguments and results of tool calls, and the port of their store. They are stored only if an operator
// configures it.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "../models/stored-chat.ts";

/** The arguments and the result of a tool call as JSON texts. Long texts are shortened. */
export interface SaidInCall {
  readonly arguments: string;
  readonly result: string;
}

export interface ToolContent extends SaidInCall {
  readonly requestId: string;
  readonly accountId: string;
  readonly environment: Environment;
  /** The app and the person who may read the content. The rules are those for stored chats. */
  readonly appId: string | null;
  readonly personId: string | null;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Stores contents. Expired contents are never found, even before they are deleted. */
export interface ToolContentStore {
  insert(contents: readonly ToolContent[]): Promise<void>;
  find(owner: ChatOwner, requestId: string, nowSeconds: number): Promise<SaidInCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Queues contents and stores them later, so that calls do not wait. */
export interface ToolContentWriter {
  /** Days to keep contents. If 0, nothing is stored. */
  readonly retentionDays: number;
  /** Queues a content. `size` is its approximate number of bytes in memory. */
  add(content: ToolContent, size: number): void;
}
