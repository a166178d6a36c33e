// Parses a model list in OpenAI's or Anthropic's format, with the extensions of common model servers.

import { GatewayError } from "../base/errors.ts";
import { type Capabilities, capabilityNames } from "../domain/models/capabilities.ts";
import type { EngineModel } from "../domain/models/engine.ts";
import type { UpstreamApi } from "../domain/models/upstream-speech.ts";
import { getText, type HttpTarget, modelsPath } from "./http-engine.ts";

export const maxListBytes = 8 * 1024 * 1024;

/** The most pages of Anthropic's model list that are read. A page has up to 1000 models. */
const maxPages = 10;

/** Requests GET /models. Rejects if the answer is not a model list. */
export async function getModels(target: HttpTarget, signal: AbortSignal): Promise<EngineModel[]> {
  if (target.api === "openai") return parseModels(await getList(target, modelsPath(target), signal));
  const models: EngineModel[] = [];
  let after = "";
  for (let page = 0; page < maxPages; page++) {
    const text = await getList(target, `${firstModelsPath(target)}${after}`, signal);
    models.push(...parseModels(text, target.api));
    const next = nextOf(text);
    if (next === undefined) break;
    after = `&after_id=${encodeURIComponent(next)}`;
  }
  return models;
}

/** Returns the path of the first page of the model list. */
export function firstModelsPath(target: HttpTarget): string {
  return target.api === "openai" ? modelsPath(target) : `${modelsPath(target)}?limit=1000`;
}

async function getList(target: HttpTarget, path: string, signal: AbortSignal): Promise<string> {
  const { status, text } = await getText(target, path, maxListBytes, signal);
  if (status !== 200) {
    const isUnversioned = status === 404 && !/\/v\d/.test(path);
    const hint = isUnversioned ? `. Its URL has no /v1, below which most servers have their API` : "";
    throw new GatewayError("upstream_error", `GET /models answered ${status}${hint}`, { detail: target.name });
  }
  if (text === undefined) throw new GatewayError("upstream_error", "GET /models answered too much");
  return text;
}

/** Returns the cursor of the next page. Undefined on the last page. */
function nextOf(text: string): string | undefined {
  const { has_more: hasMore, last_id: last } = JSON.parse(text) as Record<string, unknown>;
  return hasMore === true && typeof last === "string" && last !== "" && last.length <= 256 ? last : undefined;
}

/**
 * Model names without control characters. PostgreSQL cannot store U+0000, and usage records with such a name
 * would never be written.
 */
const namePattern = /^[^\p{Cc}\p{Cs}]+$/u;

/**
 * Parses a model list of OpenAI's format with extensions of vLLM (`max_model_len`), LM Studio and llama-server
 * (`meta`), or of Anthropic's (`created_at`, `max_input_tokens`). OpenAI announces a model's end as `shutdown_date`,
 * OpenRouter as `expiration_date`, and Mistral as `deprecation`.
 */
export function parseModels(text: string, api: UpstreamApi = "openai"): EngineModel[] {
  const value: unknown = JSON.parse(text);
  const { data, object } = (value ?? {}) as { data?: unknown; object?: unknown };
  // Ollama writes null for an empty list.
  if (data === null && object === "list") return [];
  if (!Array.isArray(data)) throw new GatewayError("upstream_error", "GET /models answered no model list");
  const models: EngineModel[] = [];
  for (const entry of data as Record<string, unknown>[]) {
    const id = entry?.["id"];
    if (typeof id !== "string" || id.length > 256 || !namePattern.test(id)) continue;
    const { owned_by: ownedBy, capabilities } = entry;
    const created = entry["created"] ?? unixSeconds(entry["created_at"]);
    const meta = entry["meta"] as { n_ctx?: unknown } | null | undefined;
    const { context_length, max_model_len, max_context_length, max_input_tokens } = entry;
    const shutdownAt = [entry["shutdown_date"], entry["expiration_date"], entry["deprecation"]]
      .map(unixSeconds)
      .find(isCount);
    const context = [context_length, max_model_len, max_context_length, meta?.n_ctx, max_input_tokens].find(isCount);
    models.push({
      id,
      ...(typeof ownedBy === "string" && ownedBy !== "" ? { ownedBy } : {}),
      ...(isCount(created) ? { created } : {}),
      ...(context === undefined ? {} : { context }),
      ...(shutdownAt === undefined ? {} : { shutdownAt }),
      ...(api === "messages" ? { capabilities: conversationsAlone } : readCapabilities(capabilities)),
    });
  }
  return models;
}

const conversationsAlone: Capabilities = { chat: true, completion: false, embeddings: false };

/** Converts a date or a time in RFC 3339 to Unix seconds. */
function unixSeconds(value: unknown): number | undefined {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

/** Reads a model's capabilities. Only known names with booleans count, because some servers list other capabilities. */
function readCapabilities(value: unknown): Pick<EngineModel, "capabilities"> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const said = value as Record<string, unknown>;
  const names = capabilityNames.filter((name) => typeof said[name] === "boolean");
  const capabilities: Capabilities = Object.fromEntries(names.map((name) => [name, said[name]]));
  return Object.keys(capabilities).length > 0 ? { capabilities } : {};
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}
