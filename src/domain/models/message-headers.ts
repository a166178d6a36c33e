// What a client of Messages says in headers beside its request, which servers that speak Messages are told as well.

/** The versions of Anthropic's API that there are requests of Messages in (platform.claude.com/docs/en/api/versioning). */
export const messageVersions = ["2023-06-01", "2026-10-21"] as const;
export type MessageVersion = (typeof messageVersions)[number];

/** The version of requests that we write ourselves, and of those whose client says nothing. */
export const defaultMessageVersion = "2023-06-01" satisfies MessageVersion;

export interface MessageHeaders {
  /** `anthropic-version`. */
  readonly version: MessageVersion;
  /** `anthropic-beta`, as it was sent; undefined where it was not. */
  readonly betas: string | undefined;
}

/** Characters of `anthropic-beta`: Claude Code sends some ten names, of thirty characters each. */
export const maxBetasLength = 4_096;

/** What may stand in `anthropic-beta`. */
export function areBetas(text: string): boolean {
  return text.length <= maxBetasLength && /^[ -~]+$/.test(text);
}
