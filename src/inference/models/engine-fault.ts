// Says why an engine could not be asked for its models, in words for operators.

import { GatewayError } from "../../base/errors.ts";
import type { Engine } from "../../domain/models/engine.ts";

/** How long an engine may take to list its models. */
export const pollTimeoutMs = 5_000;

const maxTextLength = 300;

/** Without the gateway's credentials for the engine, and of bounded length. */
export function describeFault(engine: Engine, error: unknown): string {
  return engine.redact(reasonOf(engine, error)).slice(0, maxTextLength);
}

function reasonOf({ name }: Engine, error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return `It did not list its models within ${pollTimeoutMs / 1000} s.`;
  // A message of the parser would quote what a server sent that may be no model server at all.
  if (error instanceof SyntaxError) return "GET /models answered something other than JSON.";
  const { detail = "" } = error instanceof GatewayError ? error : {};
  const prefix = `${name}: `;
  return detail.startsWith(prefix) ? `${error.message} (${detail.slice(prefix.length)})` : error.message;
}
