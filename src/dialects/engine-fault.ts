// What a model server says of a fault, whatever format it was asked in.
import { BlamelessError, type EngineErrorCode, engineErrorCodes, GatewayError } from "../base/errors.ts";
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
/**
 * Servers that have no code for it say so in words: OpenAI's (vLLM, SGLang), Anthropic's, with and without the tokens of the
 * answer, and Gemini's.
 */
const contextWords =
  /\bmaximum context length\b|\bprompt is too long\b|\bexceed context limit\b|\binput token count\b.{0,32}\bexceeds the maximum\b/i;
/** Codes and types of a server that has too much to do, and of one that holds the gateway to a rate; some have the status. */
const busyKinds: ReadonlySet<unknown> = new Set(["overloaded_error", "server_is_overloaded", "slow_down", 503, 529]);
const limitKinds: ReadonlySet<unknown> = new Set(["rate_limit_error", "rate_limit_exceeded", 429]);
/** Where nobody says when to ask again. */
const busySeconds = 5;

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

/**
 * An error that an engine told in an answer of status 200, whole or in the middle of its stream. What is wrong with the
 * request is nobody's fault but the client's; what is too much for the engine now may be asked again. `otherwise`: the message
 * where it has none. Without an engine nothing keeps secrets out of its words: they are not told.
 */
export function toldFault(
  text: string,
  engine: Pick<Engine, "redact"> | undefined,
  otherwise: string,
  detail?: string,
): GatewayError {
  const options = detail === undefined ? {} : { detail };
  if (!engine) return new GatewayError("upstream_error", otherwise, options);
  const { message = otherwise, engineCode, param } = publicFault(text, engine);
  if (engineCode !== undefined)
    return new BlamelessError("invalid_request", message, { ...options, engineCode, param });
  const { code, type } = kindIn(text);
  const engineLimited = limitKinds.has(code) || limitKinds.has(type);
  if (engineLimited || busyKinds.has(code) || busyKinds.has(type)) {
    const retryAfterSeconds = busySeconds;
    return new GatewayError("service_unavailable", message, { ...options, retryAfterSeconds, engineLimited });
  }
  return new GatewayError("upstream_error", message, { ...options, param });
}

/** The code by which clients of OpenAI's formats tell in a stream what failed. */
export function toldCode({ code, engineCode, engineLimited }: GatewayError): string {
  return engineLimited ? "rate_limit_exceeded" : (engineCode ?? code);
}

function kindIn(text: string): { code?: unknown; type?: unknown } {
  const { error, ...top } = parsedObject(text);
  return typeof error === "object" && error !== null ? error : top;
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
