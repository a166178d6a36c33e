// The port that reads all API keys in pages.
import type { Environment } from "../api-key.ts";

/** The members of a key that show when it was used and when it ends. */
export interface SurveyedKey {
  id: string;
  accountId: string;
  name: string;
  environment: Environment;
  /** Unix seconds. */
  createdAt: number;
  lastUsedAt: number | null;
  expiresAt: number | null;
}

export interface KeySurvey {
  /**
   * Returns keys by id, after `after`; `next` is undefined after the last page. Keys that have ended or will end by a
   * rotation are left out.
   */
  page(after: string, nowSeconds: number): Promise<{ keys: SurveyedKey[]; next: string | undefined }>;
}
