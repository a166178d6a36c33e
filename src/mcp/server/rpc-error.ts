// Errors in the form that MCP clients read (JSON-RPC 2.0, 5.1).
import { GatewayError } from "../../base/errors.ts";

/** An error that the SDK sends to the client with its code, message and data. */
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
/** Error code of a request that needs a capability which the client did not declare (revision 2026-07-28). */
export const missingCapability = -32_021;
const internal = -32_603;
/** Error code for refusals by the gateway and failures of MCP servers (the first one that is free for applications). */
export const refused = -32_000;

/** Converts an error for the client. Internal errors contain no details. */
export function rpcErrorOf(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof GatewayError)) return new RpcError(internal, "The gateway failed at this request.");
  const { code, message, retryAfterSeconds } = error;
  const data = { code, ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }) };
  return new RpcError(code === "invalid_request" ? invalidParams : refused, message, data);
}
