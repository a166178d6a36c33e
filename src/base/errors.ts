// The only error type of the gateway, and the closed list of its codes.

/**
 * Machine-readable error codes of the HTTP API. `wire/errors.ts` gives each its status, `type` and retry advice. A test
 * checks that this union, that table and the reference page have the same codes.
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

/** Error codes of engines that clients react to. The client gets them in place of the gateway's code. */
export const engineErrorCodes = [
  "context_length_exceeded",
  "string_above_max_length",
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "invalid_prompt",
  "unsupported_parameter",
  "unsupported_value",
] as const;

export type EngineErrorCode = (typeof engineErrorCodes)[number];

/** The limits that refuse a request. `capacity` means that no model server had a free slot in time. */
export const refusalReasons = [
  "key_requests",
  "key_tokens",
  "account_requests",
  "account_tokens",
  "key_quota",
  "account_quota",
  "member_quota",
  "app_quota",
  "tag_quota",
  "organization_quota",
  "end_user_quota",
  "capacity",
] as const;
export type RefusalReason = (typeof refusalReasons)[number];
/** The names of quotas. A quota for one tag is a `tag_quota`, whatever its owner is. */
export const quotaReasons = [
  "account_quota",
  "key_quota",
  "member_quota",
  "app_quota",
  "tag_quota",
  "organization_quota",
  "end_user_quota",
] as const;
export type QuotaReason = (typeof quotaReasons)[number];
/** The owners of quotas, as named in errors and metrics. */
export const quotaOwners = ["account", "key", "member", "app", "organization", "end_user"] as const;
export type QuotaOwner = (typeof quotaOwners)[number];

/** The quota that refused a request, in machine-readable form. Amounts in USD, times in Unix seconds. */
export interface SpentQuota {
  reason: QuotaReason;
  owner: QuotaOwner;
  unit: "requests" | "tokens" | "usd";
  limit: number;
  used: number;
  /** Amount that is reserved for running requests. */
  reserved: number;
  /** The minimum amount that the request needs. */
  needed: number;
  /** A named period, or seconds. */
  per: "hour" | "5h" | "day" | "week" | "month" | number;
  window: "calendar" | "rolling";
  /** Models that the quota covers. Null if it covers all models. */
  models: string[] | null;
  /** Tag of the requests that the quota covers. Null if it covers all requests. */
  tag: string | null;
  /** Start of the quota's window. Null if the window starts with the next use. */
  starts_at: number | null;
  resets_at: number | null;
  /** The people who can raise the quota, as words that follow "Ask". */
  ask: string;
}

export interface GatewayErrorOptions {
  /** The path of the wrong field in the request. */
  param?: string | undefined;
  /** The error code that the engine reported. */
  engineCode?: EngineErrorCode | undefined;
  /**
   * Details for the log only: may name upstreams, paths and reasons that a client must not see. Never contains a
   * secret.
   */
  detail?: string;
  /** A retry may help after this many seconds. Sent as `Retry-After`, rounded up, and `retry-after-ms`. */
  retryAfterSeconds?: number;
  /**
   * True if a retry helps, false if not. Set this only if the error code alone would give the wrong advice. Sent as
   * `x-should-retry`.
   */
  shouldRetry?: boolean;
  /**
   * True if the engine's own rate limit refused the request. The `type` of the error then says so, whatever its code
   * is.
   */
  engineLimited?: boolean;
  /** The limit that refused the request, for the metrics of throttled requests. */
  refusal?: RefusalReason;
  /** The quota that refused the request. Sent as `quota` beside `error`. */
  quota?: SpentQuota;
  cause?: unknown;
}

/** `message` is public and reaches the client. `detail` and `cause` reach only the log. */
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

/** An error that is no fault of the model server or node that answered, so that neither is paused because of it. */
export class BlamelessError extends GatewayError {}

/** Returns a 403. `message` says who may do this, and what to do. */
export function forbidden(message: string, options?: GatewayErrorOptions): GatewayError {
  return new GatewayError("permission_denied", message, options);
}

/** Returns a 400. `message` says what is wrong with the request, and what would be right. */
export function invalidRequest(message: string, options?: GatewayErrorOptions): GatewayError {
  return new GatewayError("invalid_request", message, options);
}

/** Returns the error for one wrong field. The message begins with the field's name. */
export function fieldError(param: string, reason: string): GatewayError {
  return new GatewayError("invalid_request", `${param}: ${reason}`, { param });
}

/**
 * An error that prevents the start of the server. `message` tells the operator the reason and the remedy. No stack
 * trace is printed.
 */
export class StartError extends Error {
  override readonly name: string = "StartError";
}
