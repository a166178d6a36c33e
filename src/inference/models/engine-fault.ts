// Describes, for operators, why an engine did not list its models.

import { GatewayError } from "../../base/errors.ts";
import type { Engine } from "../../domain/models/engine.ts";

/** Maximum milliseconds in which an engine must list its models. */
export const pollTimeoutMs = 5_000;

const maxTextLength = 300;

/** Returns a short error text without the gateway's credentials for the engine. */
export function describeFault(engine: Engine, error: unknown): string {
  return engine.redact(reasonOf(engine, error)).slice(0, maxTextLength);
}

function reasonOf({ name }: Engine, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `It did not list its models within ${pollTimeoutMs / 1000} s.`;
  // The message of a JSON parser quotes the answer. The answer may come from something other than a model server, so it
  // is not shown.
  if (error instanceof SyntaxError) return "GET /models answered something other than JSON.";
  const { detail = "" } = error instanceof GatewayError ? error : {};
  const prefix = `${name}: `;
  return detail.startsWith(prefix) ? `${error.message} (${detail.slice(prefix.length)})` : error.message;
}
