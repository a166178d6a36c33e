// What a request says about an upstream, checked beyond its shape and put into the form in which it is kept.

import { invalidRequest } from "../../base/errors.ts";
import { parseHttpUrl, trimSlashes } from "../../base/text/http-url.ts";
import { defaultEnvironments, inUsualOrder } from "../../domain/api-key.ts";
import { builtInEngineName } from "../../domain/models/engine.ts";
import { type UpstreamSettings, upstreamDefaults, upstreamNamePattern } from "../../domain/models/upstream.ts";
import type { CreateUpstreamRequest, UpdateUpstreamRequest } from "../../wire/upstreams.ts";

export function newSettings(request: CreateUpstreamRequest): UpstreamSettings {
  return {
    name: engineName(request.name),
    url: upstreamUrl(request.url),
    discover: request.discover ?? true,
    environments: inUsualOrder(request.environments ?? defaultEnvironments),
    timeoutSeconds: request.timeout_seconds ?? upstreamDefaults.timeoutSeconds,
    idleSeconds: request.idle_seconds ?? upstreamDefaults.idleSeconds,
    maxConcurrency: request.max_concurrency ?? null,
  };
}

export function changedSettings(current: UpstreamSettings, request: UpdateUpstreamRequest): UpstreamSettings {
  return {
    name: current.name,
    url: request.url === undefined ? current.url : upstreamUrl(request.url),
    discover: request.discover ?? current.discover,
    environments: request.environments === undefined ? current.environments : inUsualOrder(request.environments),
    timeoutSeconds: request.timeout_seconds ?? current.timeoutSeconds,
    idleSeconds: request.idle_seconds ?? current.idleSeconds,
    maxConcurrency: request.max_concurrency === undefined ? current.maxConcurrency : request.max_concurrency,
  };
}

/** In the words of the wire, for the audit log. */
export function settingsToWire(settings: UpstreamSettings) {
  return {
    url: settings.url,
    discover: settings.discover,
    environments: [...settings.environments],
    timeout_seconds: settings.timeoutSeconds,
    idle_seconds: settings.idleSeconds,
    max_concurrency: settings.maxConcurrency,
  };
}

/** Without a slash at its end. */
export function upstreamUrl(text: string): string {
  // The whole of it is never shown: what was refused may hold a password.
  if (parseHttpUrl(text)) return trimSlashes(text);
  throw invalidRequest(
    text.includes("@") || text.includes("?")
      ? "url: must have no user, password, query or fragment; a credential goes into api_key."
      : "url: must begin with http:// or https://, such as http://10.0.0.5:8000/v1.",
  );
}

/** It becomes part of a header. */
export function upstreamApiKey(text: string): string {
  if (/^[!-~]+$/.test(text)) return text;
  throw invalidRequest(
    "api_key: must be printable ASCII characters without spaces or line breaks; leave it out if the server wants none.",
  );
}

/** The name of a model server, node or not. Throws `invalid_request`. */
export function engineName(text: string): string {
  if (!upstreamNamePattern.test(text)) {
    throw invalidRequest(
      "name: must be 1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit.",
    );
  }
  if (text !== builtInEngineName) return text;
  throw invalidRequest(`name: ${text} is the built-in engine; choose another.`);
}
