// What tools were called with and what they gave, kept only where an operator wants that, and where it is kept.
import type { Environment } from "../api-key.ts";
import type { ChatOwner } from "../models/stored-chat.ts";

/** JSON texts, cut where they are long. */
export interface SaidInCall {
  readonly arguments: string;
  readonly result: string;
}

export interface ToolContent extends SaidInCall {
  readonly requestId: string;
  readonly accountId: string;
  readonly environment: Environment;
  /** Who may read it, as of stored chats. */
  readonly appId: string | null;
  readonly personId: string | null;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** An expired one is never found, whether it was swept already or not. */
export interface ToolContentStore {
  insert(contents: readonly ToolContent[]): Promise<void>;
  find(owner: ChatOwner, requestId: string, nowSeconds: number): Promise<SaidInCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

/** Keeps it off the way of the call. */
export interface ToolContentWriter {
  /** 0: nothing is kept. */
  readonly retentionDays: number;
  /** `size`: about its bytes in memory. */
  add(content: ToolContent, size: number): void;
}
