// Headers of Anthropic's Messages API that the gateway passes from clients to model servers.

/** The supported versions of Anthropic's API (platform.claude.com/docs/en/api/versioning). */
export const messageVersions = ["2023-06-01", "2026-10-21"] as const;
export type MessageVersion = (typeof messageVersions)[number];

/** The version for requests that the gateway makes itself or that have no version. */
export const defaultMessageVersion = "2023-06-01" satisfies MessageVersion;

export interface MessageHeaders {
  /** `anthropic-version`. */
  readonly version: MessageVersion;
  /** `anthropic-beta` as sent; undefined if it was not sent. */
  readonly betas: string | undefined;
}

/** Maximum length of `anthropic-beta`. Claude Code sends some ten names of thirty characters each. */
export const maxBetasLength = 4_096;

/** Reports whether `anthropic-beta` has a valid value. */
export function areBetas(text: string): boolean {
  return text.length <= maxBetasLength && /^[ -~]+$/.test(text);
}
