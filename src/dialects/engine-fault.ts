// What a model server says of a fault, whatever format it was asked in.
import { type EngineErrorCode, engineErrorCodes } from "../base/errors.ts";
import type { Engine } from "../domain/models/engine.ts";

/** Characters of a message; it is cut before anything is searched for in it. */
export const longestMessage = 1_000;

/** What an engine says of a fault, as far as a client may know it. */
export interface PublicFault {
  message: string | undefined;
  engineCode: EngineErrorCode | undefined;
  param: string | undefined;
}

/** A path as servers write it: of names, dots and indices. */
const paramPattern = /^[\w.[\]-]{1,128}$/;
/** Servers that have no code for it say so in these words, which are OpenAI's (vLLM, SGLang). */
const contextWords = /\bmaximum context length\b/i;

/**
 * What an engine said about a bad request, fit for a client: its `error.message` without addresses and without anything
 * that looks like a credential, and those of its codes that clients act upon. Undefined where there is none.
 */
export function publicFault(text: string, engine: Pick<Engine, "redact">): PublicFault {
  const { error, message, detail, ...top } = parsedObject(text);
  const nested = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : undefined;
  const said = [nested ? nested["message"] : error, message, detail].find(
    (candidate) => typeof candidate === "string" && candidate !== "",
  );
  const shown = typeof said === "string" ? withoutSecrets(said, engine) : undefined;
  const { code, type, param } = nested ?? top;
  return {
    message: shown,
    engineCode: engineCodeOf(code, type, shown),
    param: isPublicParam(param, engine) ? param : undefined,
  };
}

function isPublicParam(param: unknown, engine: Pick<Engine, "redact">): param is string {
  return typeof param === "string" && paramPattern.test(param) && withoutSecrets(param, engine) === param;
}

function parsedObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function engineCodeOf(code: unknown, type: unknown, message = ""): EngineErrorCode | undefined {
  const known = engineErrorCodes.find((one) => one === code);
  // llama.cpp has the status for a code, and tells the kind by the type.
  if (known === undefined && (type === "exceed_context_size_error" || contextWords.test(message))) {
    return "context_length_exceeded";
  }
  return known;
}

function withoutSecrets(text: string, engine: Pick<Engine, "redact">): string {
  return engine
    .redact(text)
    .slice(0, longestMessage)
    .replace(/[a-z0-9+.-]{1,40}:\/\/\S+/gi, "[address]")
    .replace(/\b(?:sk|pk|key|hf|gsk|AIza)[-_][\w-]{8,}|\bBearer\s+\S+|\b[A-Za-z0-9_-]{40,}\b/g, "[redacted]");
}
