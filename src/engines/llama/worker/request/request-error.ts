// The errors that a client of the worker can see: a status and a body.

/**
 * An error for the client. `message` reaches the client as it is, so it contains no path, no stack and nothing of
 * another request.
 */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly type: string;
  readonly code: string;
  /** The path of the wrong field. */
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

/** Returns a 400 for a text that is longer than the model can take. */
export function overlong(message: string, param: string): RequestError {
  return new RequestError(400, "invalid_request_error", "context_length_exceeded", message, param);
}

/** Turns any thrown value into the error for the client. Anything except a RequestError is our fault and is hidden. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError(500, "api_error", "internal_error", "The model failed while it generated. Try again.");
}

export function errorBody({ message, type, param, code }: RequestError): string {
  return JSON.stringify({ error: { message, type, param, code } });
}
