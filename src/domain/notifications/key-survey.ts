// The port by which all API keys are looked through, a few at a time.
import type { Environment } from "../api-key.ts";

/** What of a key says whether it is used, and for how long. */
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
  /** Keys by id, those after `after`; `next` is undefined after the last ones. Only such as have not ended, nor will by a rotation. */
  page(after: string, nowSeconds: number): Promise<{ keys: SurveyedKey[]; next: string | undefined }>;
}
