// The one error type of the gateway and the closed list of codes it may carry.

/**
 * Machine-readable error codes of the HTTP API. `wire/errors.ts` gives each its status, `type` and retry advice;
 * a test holds this union, that table and the reference page together.
 */
export const errorCodes = [
  "invalid_request",
  "invalid_api_key",
  "token_expired",
  "insufficient_scope",
  "permission_denied",
  "insufficient_quota",
  "content_blocked",
  "model_not_found",
  "previous_response_not_found",
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

/** Codes by which engines say what clients act upon: they reach the client in place of our own. */
export const engineErrorCodes = [
  "context_length_exceeded",
  "string_above_max_length",
  "content_filter",
  "content_policy_violation",
  "invalid_prompt",
  "unsupported_parameter",
  "unsupported_value",
] as const;

export type EngineErrorCode = (typeof engineErrorCodes)[number];

/** The limits by which a request is refused; `capacity`: no place at a model server in time. */
export const refusalReasons = [
  "key_requests",
  "key_tokens",
  "account_requests",
  "account_tokens",
  "key_quota",
  "account_quota",
  "member_quota",
  "app_quota",
  "capacity",
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

/** The quota that refused a request, as programs read it. USD as they are, times in Unix seconds. */
export interface SpentQuota {
  owner: "account" | "key" | "member" | "app";
  unit: "requests" | "tokens" | "usd";
  limit: number;
  used: number;
  /** Set aside for requests that are still running. */
  reserved: number;
  /** The least that the request needs. */
  needed: number;
  /** A span with a name, or seconds. */
  per: "hour" | "5h" | "day" | "week" | "month" | number;
  window: "calendar" | "rolling";
  /** null: all models. */
  models: string[] | null;
  /** null: whatever tags a request has. */
  tag: string | null;
  /** null: it begins with the next use. */
  starts_at: number | null;
  resets_at: number | null;
}

export interface GatewayErrorOptions {
  /** The field that is wrong, by its path in the request. */
  param?: string | undefined;
  /** The code that the engine gave. */
  engineCode?: EngineErrorCode | undefined;
  /** Detail for the log only: may name upstreams, paths and reasons that a client must not see. Never a secret. */
  detail?: string;
  /** Seconds after which a retry may help; becomes `Retry-After`, rounded up, and `retry-after-ms`. */
  retryAfterSeconds?: number;
  /** Whether a retry helps, where this one knows better than its code; becomes `x-should-retry`. */
  shouldRetry?: boolean;
  /** An engine's own rate limit refused the request: its type says so, whatever the code is. */
  engineLimited?: boolean;
  /** Which limit refused the request, where one did; for the counts of what is throttled. */
  refusal?: RefusalReason;
  /** The quota that did; becomes `quota` beside `error`. */
  quota?: SpentQuota;
  cause?: unknown;
}

/** `message` is public and reaches the client; `detail` and `cause` only reach the log. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  readonly detail: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly shouldRetry: boolean | undefined;
  readonly engineLimited: boolean | undefined;
  readonly refusal: RefusalReason | undefined;
  readonly quota: SpentQuota | undefined;
  readonly param: string | undefined;
  readonly engineCode: EngineErrorCode | undefined;

  constructor(code: ErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.shouldRetry = options.shouldRetry;
    this.engineLimited = options.engineLimited;
    this.refusal = options.refusal;
    this.quota = options.quota;
    this.param = options.param;
    this.engineCode = options.engineCode;
  }
}

/** No fault of who answers: neither a model server nor a node is put to rest for it. */
export class BlamelessError extends GatewayError {}

/** 403: `message` says who may, and what to do. */
export function forbidden(message: string, options?: GatewayErrorOptions): GatewayError {
  return new GatewayError("permission_denied", message, options);
}

/** 400: the request is wrong; `message` says why, and what would be right. */
export function invalidRequest(message: string, options?: GatewayErrorOptions): GatewayError {
  return new GatewayError("invalid_request", message, options);
}

/** The request is refused for one of its fields, whose name begins the message. */
export function fieldError(param: string, reason: string): GatewayError {
  return new GatewayError("invalid_request", `${param}: ${reason}`, { param });
}

/** The server cannot start; `message` tells the operator why and what to do, and needs no stack. */
export class StartError extends Error {
  override readonly name: string = "StartError";
}
