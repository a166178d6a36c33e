// Describes for operators why an engine did not list its models.

import { GatewayError } from "../../base/errors.ts";
import type { Engine } from "../../domain/models/engine.ts";

/** Milliseconds that an engine has to list its models. */
export const pollTimeoutMs = 5_000;

const maxTextLength = 300;

/** Returns a short error text without the gateway's credentials for the engine. */
export function describeFault(engine: Engine, error: unknown): string {
  return engine.redact(reasonOf(engine, error)).slice(0, maxTextLength);
}

function reasonOf({ name }: Engine, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `It did not list its models within ${pollTimeoutMs / 1000} s.`;
  // A JSON parser's message quotes the answer, which may come from something other than a model server.
  if (error instanceof SyntaxError) return "GET /models answered something other than JSON.";
  const { detail = "" } = error instanceof GatewayError ? error : {};
  const prefix = `${name}: `;
  return detail.startsWith(prefix) ? `${error.message} (${detail.slice(prefix.length)})` : error.message;
}
