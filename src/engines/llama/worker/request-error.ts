// The errors that a client of the worker can see: a status and the three strings of the error body.

/** `message` reaches the client as it is: no path, no stack, nothing of another request. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly type: string;
  readonly code: string;

  constructor(status: number, type: string, code: string, message: string) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code;
  }
}

/** 400; the message names the field, what is allowed, and what to do. */
export function invalid(message: string): RequestError {
  return new RequestError(400, "invalid_request_error", "invalid_request", message);
}

/** Turns whatever was thrown into what the client sees; what is not a RequestError is a fault of ours and hidden. */
export function asRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  return new RequestError(500, "api_error", "internal_error", "The model failed while it generated. Try again.");
}

export function errorBody(error: RequestError): string {
  return JSON.stringify({ error: { message: error.message, type: error.type, code: error.code } });
}
