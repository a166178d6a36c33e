// The port that reads all API keys in pages.
import type { Environment } from "../api-key.ts";

/** When a key was last used and when it ends. */
export interface SurveyedKey {
  id: string;
  accountId: string;
  name: string;
  environment: Environment;
  /** Unix seconds. */
  createdAt: number;
  lastUsedAt: number | null;
  expiresAt: number | null;
  /**
   * Days between two rotations: the key's own schedule or its account's, whichever rotates sooner. If both have equal
   * days, the key's own applies. Null without a schedule. Operators' keys follow only their own.
   */
  everyDays: number | null;
  overlapSeconds: number | null;
}

export interface ModelUser {
  keyId: string;
  model: string;
}

export interface KeySurvey {
  /**
   * Returns a page of keys in the order of their ids, beginning after `after`. `next` is undefined after the last page.
   * Keys that have ended, or are ending because of a rotation, are left out.
   */
  page(after: string, nowSeconds: number): Promise<{ keys: SurveyedKey[]; next: string | undefined }>;
  /** Returns which of the keys used which of the models since a time in Unix seconds, to the day. */
  users(keyIds: readonly string[], models: readonly string[], since: number): Promise<ModelUser[]>;
}
