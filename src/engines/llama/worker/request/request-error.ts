// The errors that a worker sends to its client, with status and body.

/**
 * An error for the client. The message is sent as it is, so it must contain no path, no stack and nothing of
 * another request.
 */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly type: string;
  readonly code: string;
  /** The path of the invalid field. */
  readonly param: string | undefined;

  constructor(status: number, type: string, code: string, message: string, param?: string) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code;
    this.param = param;
  }
}

/** Returns a 400 whose message names the field, what is allowed, and what to do. */
export function invalid(message: string, param?: string): RequestError {
  return new RequestError(400, "invalid_request_error", "invalid_request", message, param);
}

/** Returns a 400 error for a text that is too long for the model. */
export function overlong(message: string, param: string): RequestError {
  return new RequestError(400, "invalid_request_error", "context_length_exceeded", message, param);
}

/** Converts any thrown value into an error for the client. The details of anything but a RequestError are hidden. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError(500, "api_error", "internal_error", "The model failed while it generated. Try again.");
}

export function errorBody({ message, type, param, code }: RequestError): string {
  return JSON.stringify({ error: { message, type, param, code } });
}
