// Arguments and results of tool calls, stored only if an operator configures it, and the port of their store.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "../models/stored-chat.ts";

/** The arguments and the result of a tool call as JSON texts, shortened if they are long. */
export interface SaidInCall {
  readonly arguments: string;
  readonly result: string;
}

export interface ToolContent extends SaidInCall {
  readonly requestId: string;
  readonly accountId: string;
  readonly environment: Environment;
  /** The app and the person who may read the content, as for stored chats. */
  readonly appId: string | null;
  readonly personId: string | null;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Stores contents. An expired one is never found, even before it is deleted. */
export interface ToolContentStore {
  insert(contents: readonly ToolContent[]): Promise<void>;
  find(owner: ChatOwner, requestId: string, nowSeconds: number): Promise<SaidInCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Stores contents without delaying the call. */
export interface ToolContentWriter {
  /** Days to keep contents; 0: nothing is stored. */
  readonly retentionDays: number;
  /** `size`: the content's approximate bytes in memory. */
  add(content: ToolContent, size: number): void;
}
