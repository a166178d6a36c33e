// Errors of OAuth endpoints: the codes of the RFCs, and a reason for the log only.

/** Codes of RFC 6749, 5.2; 8628, 3.5; 8707, 2; 7591, 3.2.2. `temporarily_unavailable` (4.1.2.1) if a retry may help. */
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
  /** A few words for the log. */
  readonly reason: string;

  /** `description` is public: no secret, and no hint which of two guesses was better. */
  constructor(code: OAuthErrorCode, description: string, reason: string = code) {
    super(description);
    this.code = code;
    this.reason = reason;
  }
}

/** Returns the same error text for every fault of a code or token, so that it does not reveal how close a guess was. */
export function invalidGrant(reason: string): OAuthError {
  return new OAuthError(
    "invalid_grant",
    "The code or token is unknown, expired, used, revoked, or was not issued for this request.",
    reason,
  );
}
