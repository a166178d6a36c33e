// Reads the error that a model server reports, in the form of any vendor.
import { BlamelessError, type EngineErrorCode, engineErrorCodes, GatewayError } from "../../base/errors.ts";
import { type Engine, EngineFault } from "../../domain/models/engine.ts";
import { reportedReason } from "./reported-reason.ts";

/** Maximum length of an error message in characters. A longer message is cut before it is searched. */
const maxMessageLength = 1_000;

/** The part of a model server's error that a client may see. */
export interface PublicFault {
  message: string | undefined;
  engineCode: EngineErrorCode | undefined;
  param: string | undefined;
}

/**
 * Matches the words of servers that have no error code for an exceeded context. Agents shorten their conversation only
 * if they recognise such an error.
 */
const contextWords = new RegExp(
  [
    // OpenAI's words, which vLLM, SGLang, Mistral and others use.
    String.raw`\bmaximum context length\b`,
    // Anthropic, with and without the tokens of the answer.
    String.raw`\bprompt is too long\b|\bexceed context limit\b`,
    // Gemini.
    String.raw`\binput token count\b.{0,32}\bexceeds the maximum\b`,
    // SGLang and Together; vLLM for images; xAI.
    String.raw`\blonger than the (?:model's context length|maximum model length)\b|\bmaximum prompt length is \d`,
    // llama-server before it had a type, OpenAI's newer words, MiniMax, LM Studio and Ollama.
    String.raw`\bexceeds the (?:available context size|context (?:window|length))\b|\bcontext window exceeds limit\b`,
    String.raw`\bis greater than the context length\b`,
    // Words of Moonshot, Bedrock and Alibaba.
    String.raw`\bexceeded model token limit\b|\binput is too long for requested model\b`,
    String.raw`\brange of input length should be\b`,
    // Text Generation Inference and Text Embeddings Inference.
    "`inputs` (?:tokens \\+ `max_new_tokens` must be <=|must have less than \\d{1,9} tokens)",
  ].join("|"),
  "i",
);
/**
 * Error codes and types with which a server reports that it is overloaded or limits the gateway's request rate. Some
 * servers send the HTTP status instead.
 */
const busyKinds: ReadonlySet<unknown> = new Set(["overloaded_error", "server_is_overloaded", "slow_down", 503, 529]);
const limitKinds: ReadonlySet<unknown> = new Set(["rate_limit_error", "rate_limit_exceeded", 429]);
/**
 * Error codes and types with which providers report that the account has no credit or quota left. Some providers send
 * the status 429 or 400 with them.
 */
const unpaidKinds: ReadonlySet<unknown> = new Set([
  ...["insufficient_quota", "insufficient_user_quota", "exceeded_current_quota_error", "insufficient_credits"],
  ...["insufficient_balance", "billing_hard_limit_reached", "billing_not_active", "billing_error"],
  "Arrearage",
]);
/**
 * Matches the message of Anthropic and xAI for missing credit, for which they have neither a code nor a type. The whole
 * message must match. An error about a member quotes its name or value, so otherwise a client could cause a deployment
 * to be suspended.
 */
const unpaidWords =
  /^your (?:credit balance is too low|team [\w-]{1,64} has either used all available credits)\b[^:'"`]*$|^you have reached your specified API usage limits\b[^:'"`]*(?:\d\d:\d\d UTC\.)?$/i;
/**
 * Error codes and types with which providers refuse the gateway's key or account. Some providers send the status 400
 * with them.
 */
const refusedKeyKinds: ReadonlySet<unknown> = new Set([
  ...["invalid_api_key", "organization_restricted", "authentication_error", "auth_error"],
]);
/**
 * Matches the words with which Google, xAI and Anthropic refuse a key or an account if they send status 400 without
 * such a code. The whole message must match, for the same reason as above.
 */
const refusedKeyWords = new RegExp(
  `^(?:${[
    String.raw`API key (?:not valid\. Please pass a valid|expired\. Please renew the) API key`,
    String.raw`Incorrect API key provided: [\w*.-]{1,64}\. You can obtain an API key from https://console\.x\.ai`,
    "This organization has been disabled",
    "User location is not supported for the API use",
  ].join("|")})\\.?$`,
);
/**
 * Error codes with which OpenAI reports a faulty image in the request after the answer has begun, in a failed response.
 */
const imageFaults =
  /^(?:invalid_(?:base64_)?image(?:_(?:format|url|mode))?|image_(?:too_(?:large|small)|parse_error|content_policy_violation)|image_file_(?:too_large|not_found)|unsupported_image_media_type|empty_image_file|failed_to_download_image)$/;
/**
 * Matches a 404 message that names an endpoint. Then the path is missing, or the model does not support it, but the
 * model itself exists.
 */
const endpointWords =
  /\binvalid url\b|\/(?:completions|responses|messages|embeddings|rerank|moderations|speech|transcriptions|generations)\b/i;

/**
 * Matches ids such as `file-1a2b`, `vs_68a1` and `skill_01Ab`. Words and members without a digit, such as
 * `tool_choice`, do not match.
 */
const objectId = /\b[a-z]{2,16}[-_](?=[a-z_-]*\d)[\w-]{2,128}/gi;

/**
 * The message for clients if the operator's account at the provider has no credit or quota left. In this case, waiting
 * does not help.
 */
export const unpaidReason =
  "The gateway's own account at the model server has no credit or quota left; its operator has to mend that.";
/** Time in seconds that a client must wait if the model server does not say when to retry. */
const busySeconds = 5;

/**
 * Returns the part of a bad request's error that a client may see: the reason without addresses or likely credentials,
 * and the codes that clients react to.
 */
export function publicFault(text: string, engine: Pick<Engine, "redact">): PublicFault {
  const { message, place, code, type } = reportedReason(text);
  const shown = message === undefined ? undefined : withoutSecrets(message, engine);
  const isPublic = place !== undefined && withoutSecrets(place, engine) === place;
  return { message: shown, engineCode: engineCodeOf(code, type, shown), param: isPublic ? place : undefined };
}

/** Reports whether the error says that the gateway's account at its provider has no credit or quota left. */
export function saysUnpaid(text: string): boolean {
  const { code, type, message = "" } = reportedReason(text);
  return unpaidKinds.has(code) || unpaidKinds.has(type) || unpaidWords.test(message);
}

/** Reports whether the error says that the provider refuses the gateway's key or account. */
export function saysKeyRefused(text: string): boolean {
  const { code, type, message = "" } = reportedReason(text);
  return refusedKeyKinds.has(code) || refusedKeyKinds.has(type) || refusedKeyWords.test(message);
}

/**
 * Reports whether an error with status 403 is OpenRouter's refusal of a flagged input, and not a refusal of the
 * gateway's credentials.
 */
export function tellsFlagged(text: string): boolean {
  return /"flagged_input"\s*:/.test(text);
}

/**
 * Returns what is missing according to an error with status 404. `object`: something that the request names, such as an
 * earlier item or a file. `endpoint`: the path, as reported by a server and not by a proxy in front of it. `unknown`:
 * the error does not say. `isNamed` reports whether the request contains an id. Ids of models do not count.
 */
export function missingIn(text: string, isNamed: (id: string) => boolean): "model" | "object" | "endpoint" | "unknown" {
  if (!text.trimStart().startsWith("{")) return "unknown";
  const { code, type, place, message } = reportedReason(text);
  if (message === undefined) return "unknown";
  // This check comes first, because the message quotes an id that the client chose. Such an id may contain any words.
  if (type === "invalid_request_error" && place !== undefined && place !== "model") return "object";
  if (endpointWords.test(message)) return "endpoint";
  if (code === "model_not_found" || place === "model" || /\bmodel\b/i.test(message)) return "model";
  // If a file, a container, a vector store or a skill is missing, OpenAI and Anthropic do not name the member that
  // refers to it.
  const ids = message.slice(0, maxMessageLength).match(objectId) ?? [];
  return ids.some(isNamed) ? "object" : "endpoint";
}

/**
 * Reports whether an object is an error in place of an answer or an event. An error has OpenAI's `error`, vLLM's
 * `object`, Anthropic's `type`, FastAPI's `detail`, or only a message with a code or a status. If the object also has
 * an answer, only the first three forms count. `list` is the name of the member that holds the answer, unless the
 * answer is one of a conversation.
 */
export function hasFault(data: Readonly<Record<string, unknown>>, list = "choices"): boolean {
  const { error, object, type } = data;
  if (object === "error" || type === "error") return true;
  // The object of the Responses API has its own member `error`, so this member alone shows no error there.
  if (error !== undefined && error !== null && object !== "response") return true;
  if (data["choices"] !== undefined || [list, "output", "content"].some((name) => isFilledList(data[name])))
    return false;
  if (typeof type === "string" && !/error|fail/i.test(type)) return false;
  const { detail, errors, message, success } = data;
  if (typeof detail === "string" || Array.isArray(detail) || isFilledList(errors) || success === false) return true;
  return typeof message === "string" && codeMembers.some((name) => isFailure(data[name]));
}

const codeMembers = ["code", "status", "status_code", "statusCode", "error_code", "errorCode"] as const;

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isFailure(code: unknown): boolean {
  return code !== undefined && !/^(?:0|200|ok|success)$/i.test(String(code));
}

/**
 * Converts an error that arrived with status 200, either as the whole answer or in the middle of its stream. A faulty
 * request is the client's error. If a server is overloaded, the request may be repeated. `otherwise` is the message if
 * the error has none. Without an engine, secrets cannot be redacted, so the server's words are left out.
 */
export function reportedFault(
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
  if (saysUnpaid(text)) return new GatewayError("upstream_error", unpaidReason, options);
  const { code, type } = reportedReason(text);
  const engineLimited = limitKinds.has(code) || limitKinds.has(type);
  if (engineLimited || busyKinds.has(code) || busyKinds.has(type)) {
    const retryAfterSeconds = busySeconds;
    return new GatewayError("service_unavailable", message, { ...options, retryAfterSeconds, engineLimited });
  }
  if (imageFaults.test(String(code))) return new BlamelessError("invalid_request", message, { ...options, param });
  return new EngineFault("server_error", message, { ...options, param });
}

/** Returns the error code that clients of OpenAI's formats read in a stream. */
export function reportedCode({ code, engineCode, engineLimited }: GatewayError): string {
  return engineLimited ? "rate_limit_exceeded" : (engineCode ?? code);
}

function engineCodeOf(code: unknown, type: unknown, message = ""): EngineErrorCode | undefined {
  const known = engineErrorCodes.find((one) => one === code);
  // The model server llama.cpp sends the status as the code, and the kind of error as the type.
  if (known === undefined && (type === "exceed_context_size_error" || contextWords.test(message))) {
    return "context_length_exceeded";
  }
  return known;
}

function withoutSecrets(text: string, engine: Pick<Engine, "redact">): string {
  return engine
    .redact(text)
    .slice(0, maxMessageLength)
    .replace(/[a-z0-9+.-]{1,40}:\/\/\S+/gi, "[address]")
    .replace(/\b(?:sk|pk|key|hf|gsk|AIza)[-_][\w-]{8,}|\bBearer\s+\S+|\b[A-Za-z0-9_-]{40,}\b/g, "[redacted]");
}
