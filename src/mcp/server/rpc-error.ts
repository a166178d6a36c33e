// Errors as clients of the protocol read them (JSON-RPC 2.0, 5.1).
import { GatewayError } from "../../base/errors.ts";

/** The packages of the protocol send code, message and data of whatever is thrown. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export const methodNotFound = -32_601;
export const invalidParams = -32_602;
/** The client does not say that it can what the request takes (2026-07-28). */
export const missingCapability = -32_021;
const internal = -32_603;
/** The first of those that are free for servers: the gateway's own refusals, and what became of a server. */
export const refused = -32_000;

/** Nothing of what went wrong inside is told. */
export function rpcErrorOf(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof GatewayError)) return new RpcError(internal, "The gateway failed at this request.");
  const { code, message, retryAfterSeconds } = error;
  const data = { code, ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }) };
  return new RpcError(code === "invalid_request" ? invalidParams : refused, message, data);
}
