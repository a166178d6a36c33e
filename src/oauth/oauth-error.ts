// What an OAuth endpoint refuses with: the codes of its RFCs, and a reason for the log alone.

/** RFC 6749, 5.2; 8628, 3.5; 8707, 2; 7591, 3.2.2. `temporarily_unavailable` (4.1.2.1) for what is worth another try. */
export type OAuthErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_redirect_uri"
  | "invalid_client_metadata"
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token"
  | "temporarily_unavailable";

export class OAuthError extends Error {
  override readonly name = "OAuthError";
  readonly code: OAuthErrorCode;
  /** One of a few words, for the log. */
  readonly reason: string;

  /** `description` is public: no secret, and nothing that tells which of two guesses was better. */
  constructor(code: OAuthErrorCode, description: string, reason: string = code) {
    super(description);
    this.code = code;
    this.reason = reason;
  }
}

/** One text for whatever is wrong with a code or token: it tells nobody how close a guess was. */
export function invalidGrant(reason: string): OAuthError {
  return new OAuthError(
    "invalid_grant",
    "The code or token is unknown, expired, used, revoked, or was not issued for this request.",
    reason,
  );
}
