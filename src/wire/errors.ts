// Status, type and JSON that each error has in the API.
import { type ErrorCode, GatewayError } from "../base/errors.ts";
import { maskKeys } from "../domain/api-key.ts";

interface ErrorShape {
  status: number;
  type: string;
  /** Says in the API reference when the error happens. */
  when: string;
  /** Tells SDKs whether a retry helps. Undefined if the SDKs' own rule is right for this error. */
  shouldRetry?: boolean;
}

/** Status, type and meaning of each error code. */
export const errorTable: Readonly<Record<ErrorCode, ErrorShape>> = {
  invalid_request: {
    status: 400,
    type: "invalid_request_error",
    when: "The request is malformed, or a field has the wrong type or is out of range. The message names the field and the allowed values.",
  },
  invalid_api_key: {
    status: 401,
    type: "invalid_request_error",
    when: "The API key is missing, malformed, unknown, revoked, expired, or not valid here. All cases share one message, so that an attacker learns nothing. It ends with OpenAI's wording, by which some clients recognize a wrong key.",
  },
  token_expired: { status: 401, type: "authentication_error", when: "The access token is genuine but has expired." },
  insufficient_scope: {
    status: 403,
    type: "permission_error",
    when: "The credential lacks the scope that the message names.",
  },
  permission_denied: {
    status: 403,
    type: "permission_error",
    when: "The credential is valid and has the scope, but lacks permission for this action on this object. The message says why.",
  },
  insufficient_quota: { status: 403, type: "insufficient_quota", when: "The quota is used up.", shouldRetry: false },
  content_blocked: {
    status: 400,
    type: "invalid_request_error",
    when: "A guardrail of the model blocked the request. The message names the guardrail.",
  },
  model_not_found: {
    status: 404,
    type: "invalid_request_error",
    when: "The model does not exist, or this key may not use it.",
  },
  previous_response_not_found: {
    status: 400,
    type: "invalid_request_error",
    when: "`previous_response_id` names no response that this credential can continue. The response never existed, was deleted, has expired, or belongs to someone else.",
  },
  not_found: { status: 404, type: "invalid_request_error", when: "The endpoint or object does not exist." },
  method_not_allowed: {
    status: 405,
    type: "invalid_request_error",
    when: "The endpoint does not support this method. `Allow` lists the supported methods.",
  },
  request_too_large: {
    status: 413,
    type: "invalid_request_error",
    when: "The body is larger than the limit that the message names.",
  },
  unsupported_media_type: {
    status: 415,
    type: "invalid_request_error",
    when: "The body is not declared as JSON, or has an unsupported charset or Content-Encoding.",
  },
  rate_limit_exceeded: {
    status: 429,
    type: "rate_limit_error",
    when: "A rate limit is reached. `Retry-After` says when to retry.",
  },
  internal_error: {
    status: 500,
    type: "api_error",
    when: "The gateway failed. Search its log for the request id.",
  },
  upstream_error: { status: 502, type: "api_error", when: "Every model server that could serve the request failed." },
  upstream_timeout: { status: 504, type: "api_error", when: "The model server did not answer in time." },
  service_unavailable: {
    status: 503,
    type: "overloaded_error",
    when: "No capacity is free, or a required store is unreachable. `Retry-After` says when to retry. If a model server's own rate limit is the reason, the type is `rate_limit_error`.",
    shouldRetry: true,
  },
};

/** Converts anything that was thrown to an error that a client may see. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new GatewayError("internal_error", "The gateway failed. The request id finds the reason in its log.", {
    detail,
    cause: error,
  });
}

/**
 * Returns `{"error": {message, type, code}}`. Every member of `error` is a string. `param` is present only if one field
 * of the request is at fault. A spent quota is described by the member `quota` beside `error`.
 */
export function renderError(error: GatewayError): string {
  const { message, param, code, engineCode, quota } = error;
  return JSON.stringify({
    error: {
      message: maskKeys(message),
      type: typeOf(error),
      ...(param !== undefined && { param: maskKeys(param) }),
      code: engineCode ?? code,
    },
    ...(quota && { quota }),
  });
}

/**
 * Returns the type of an error. If a model server's own limit is reached, the status shows that the limit is not the
 * client's. Even then, the type shows that a limit was reached.
 */
function typeOf({ code, engineLimited }: GatewayError): string {
  return engineLimited ? errorTable.rate_limit_exceeded.type : errorTable[code].type;
}
