// The one error type of the gateway and the closed list of codes it may carry.
import type { RefusalReason } from "./refusal.ts";

/**
 * Machine-readable error codes of the HTTP API. `http/errors.ts` gives each its status, `type` and retry advice;
 * a test holds this union, that table and the reference page together.
 */
export const errorCodes = [
  "invalid_request",
  "invalid_api_key",
  "token_expired",
  "insufficient_scope",
  "permission_denied",
  "insufficient_quota",
  "model_not_found",
  "not_found",
  "method_not_allowed",
  "request_too_large",
  "unsupported_media_type",
  "rate_limit_exceeded",
  "internal_error",
  "upstream_error",
  "upstream_timeout",
  "service_unavailable",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

export interface GatewayErrorOptions {
  /** For the log only: may name upstreams, paths and reasons that a client must not see. Never a secret. */
  detail?: string;
  /** Seconds after which a retry may help; becomes `Retry-After`, rounded up, and `retry-after-ms`. */
  retryAfterSeconds?: number;
  /** Whether a retry helps, where this one knows better than its code; becomes `x-should-retry`. */
  shouldRetry?: boolean;
  /** Which limit refused the request, where one did; for the counts of what is throttled. */
  refusal?: RefusalReason;
  cause?: unknown;
}

/** `message` is public and reaches the client; `detail` and `cause` only reach the log. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly detail: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly shouldRetry: boolean | undefined;
  readonly refusal: RefusalReason | undefined;

  constructor(code: ErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.shouldRetry = options.shouldRetry;
    this.refusal = options.refusal;
  }
}

/** The server cannot start; `message` tells the operator why and what to do, and needs no stack. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}
