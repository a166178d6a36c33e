// Validates the values of an upstream in an operator's request, and converts them to the stored form.

import { invalidRequest } from "../../base/errors.ts";
import { parseHttpUrl, trimSlashes } from "../../base/text/http-url.ts";
import { defaultEnvironments, inUsualOrder } from "../../domain/api-key.ts";
import { builtInEngineName } from "../../domain/models/engine.ts";
import { type UpstreamSettings, upstreamDefaults, upstreamNamePattern } from "../../domain/models/upstream.ts";
import {
  apiNames,
  queryNamePattern,
  queryValuePattern,
  speechFault,
  type UpstreamSpeech,
  usualSpeech,
} from "../../domain/models/upstream-speech.ts";
import type { CreateUpstreamRequest, UpdateUpstreamRequest } from "../../wire/upstreams.ts";

export function newSettings(request: CreateUpstreamRequest): UpstreamSettings {
  return {
    name: engineName(request.name),
    url: upstreamUrl(request.url),
    discover: request.discover ?? true,
    local: request.local ?? false,
    environments: inUsualOrder(request.environments ?? defaultEnvironments),
    timeoutSeconds: request.timeout_seconds ?? upstreamDefaults.timeoutSeconds,
    idleSeconds: request.idle_seconds ?? upstreamDefaults.idleSeconds,
    maxConcurrency: request.max_concurrency ?? null,
    ...requestedSpeech(usualSpeech, request),
  };
}

export function changedSettings(current: UpstreamSettings, request: UpdateUpstreamRequest): UpstreamSettings {
  const url = request.url === undefined ? current.url : upstreamUrl(request.url);
  // If the URL moves to another server, settings that belong to the earlier server no longer apply.
  const isSameServer = new URL(url).origin === new URL(current.url).origin;
  return {
    name: current.name,
    url,
    discover: request.discover ?? current.discover,
    local: request.local ?? (isSameServer && current.local),
    environments: request.environments === undefined ? current.environments : inUsualOrder(request.environments),
    timeoutSeconds: request.timeout_seconds ?? current.timeoutSeconds,
    idleSeconds: request.idle_seconds ?? current.idleSeconds,
    maxConcurrency: request.max_concurrency === undefined ? current.maxConcurrency : request.max_concurrency,
    ...requestedSpeech(current, request),
  };
}

type SpeechRequest = Pick<UpdateUpstreamRequest, SpeechMember>;
type SpeechMember = "api" | "apis" | "key_header" | "query" | "cache_salt" | "priority" | "identifiers";

/**
 * Returns the changed settings. Members that the request does not contain stay as in `current`. Throws
 * `invalid_request`.
 */
export function requestedSpeech(current: UpstreamSpeech, request: Nullable<SpeechRequest>): UpstreamSpeech {
  const { api, apis, key_header: keyHeader, query, identifiers } = request;
  const speech: UpstreamSpeech = {
    api: api ?? current.api,
    apis: apis === undefined ? current.apis : apis && apiNames.filter((name) => apis.includes(name)),
    keyHeader: keyHeader === undefined ? current.keyHeader : keyHeader,
    query: query === undefined ? current.query : upstreamQuery(query ?? usualSpeech.query),
    cacheSalt: request.cache_salt ?? current.cacheSalt,
    priority: request.priority ?? current.priority,
    identifiers: identifiers === undefined ? current.identifiers : identifiers,
  };
  const fault = speechFault(speech);
  if (fault) throw invalidRequest(`apis: ${fault.message}. ${fault.fix}`);
  return speech;
}

type Nullable<Members> = { [Name in keyof Members]: Members[Name] | null };

const maxParameters = 20;

/** Validates query parameters, which become part of a path. */
function upstreamQuery(query: UpstreamSpeech["query"]): UpstreamSpeech["query"] {
  const parameters = Object.entries(query);
  if (parameters.length > maxParameters) throw invalidRequest(`query: must have ${maxParameters} parameters at most.`);
  for (const [name, value] of parameters) {
    if (queryNamePattern.test(name) && queryValuePattern.test(value)) continue;
    throw invalidRequest(
      "query: must have names of 1 to 64 letters, digits, hyphens, dots and underscores, and values of 1 to 256 printable ASCII characters without spaces.",
    );
  }
  return query;
}

/** Returns the settings in the form of the API, for the audit log. */
export function settingsToWire(settings: UpstreamSettings) {
  return {
    url: settings.url,
    discover: settings.discover,
    local: settings.local,
    environments: [...settings.environments],
    timeout_seconds: settings.timeoutSeconds,
    idle_seconds: settings.idleSeconds,
    max_concurrency: settings.maxConcurrency,
    ...{ api: settings.api, apis: settings.apis && [...settings.apis] },
    ...{ key_header: settings.keyHeader, query: { ...settings.query } },
    ...{ cache_salt: settings.cacheSalt, priority: settings.priority, identifiers: settings.identifiers },
  };
}

/** Returns the URL without a slash at its end. */
export function upstreamUrl(given: string): string {
  const text = given.trim();
  // The error does not show the whole URL, because an invalid URL may contain a password.
  if (parseHttpUrl(text)) return trimSlashes(text);
  throw invalidRequest(
    text.includes("@") || text.includes("?")
      ? "url: must have no user, password, query or fragment; a credential goes into api_key."
      : "url: must begin with http:// or https://, such as http://10.0.0.5:8000/v1.",
  );
}

/** Validates an API key, which becomes part of a header. */
export function upstreamApiKey(text: string): string {
  if (/^[!-~]+$/.test(text)) return text;
  throw invalidRequest(
    "api_key: must be printable ASCII characters without spaces or line breaks; leave it out if the server wants none.",
  );
}

/** Validates the name of an upstream or node. Throws `invalid_request`. */
export function engineName(text: string): string {
  if (!upstreamNamePattern.test(text)) {
    throw invalidRequest(
      "name: must be 1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit.",
    );
  }
  if (text !== builtInEngineName) return text;
  throw invalidRequest(`name: ${text} is the built-in engine; choose another.`);
}
