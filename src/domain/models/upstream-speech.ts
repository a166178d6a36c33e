// The settings for requests to a model server: its APIs, the header that carries the API key, and query parameters.
import type { EngineFormats } from "./engine.ts";
import type { IdentifierWay, Isolation } from "./isolation.ts";
import type { ConversationOperation } from "./operation.ts";

/**
 * `openai`: OpenAI's API, which most servers have. `messages`: Anthropic's API, with its own headers and model list.
 */
export const upstreamApis = ["openai", "messages"] as const;
export type UpstreamApi = (typeof upstreamApis)[number];

/** The names of conversation formats in settings and in the API. */
export const apiNames = ["chat", "responses", "messages"] as const;
export type ApiName = (typeof apiNames)[number];

const operationOf = {
  chat: "chat",
  responses: "response",
  messages: "message",
} as const satisfies Record<ApiName, ConversationOperation>;

/** Headers that can carry the API key. `authorization` sends the key as a bearer token. */
export const keyHeaders = ["authorization", "api-key", "x-api-key"] as const;
export type KeyHeader = (typeof keyHeaders)[number];

/** Names of query parameters may only have characters that every server reads alike. */
export const queryNamePattern = /^[\w.~-]{1,64}$/;
export const queryValuePattern = /^[!-~]{1,256}$/;

export interface UpstreamSpeech {
  api: UpstreamApi;
  /** The conversation formats that the server supports. If null, the gateway detects them. */
  apis: readonly ApiName[] | null;
  /** The header that carries the API key. If null, the usual header of `api`. */
  keyHeader: KeyHeader | null;
  /** Query parameters to send with every request. */
  query: Readonly<Record<string, string>>;
  /** True if requests get a `cache_salt`, which vLLM supports. */
  cacheSalt: boolean;
  /** True if requests get a `priority`, which vLLM supports with `--scheduling-policy priority`. */
  priority: boolean;
  /** Describes how the server gets user ids. If null: unchanged if the server is local, otherwise hashed. */
  identifiers: IdentifierWay | null;
}

export const usualSpeech: UpstreamSpeech = {
  ...{ api: "openai", apis: null, keyHeader: null, query: {} },
  ...{ cacheSalt: false, priority: false, identifiers: null },
};

/** Picks the members of `UpstreamSpeech` from settings that have more members. Missing members get their defaults. */
export function speechOf(said: SaidSpeech): UpstreamSpeech {
  const { api, apis, keyHeader, query, cacheSalt = false, priority = false, identifiers = null } = said;
  return {
    ...{ api, apis: apis ?? null, keyHeader: keyHeader ?? null, query: query ?? usualSpeech.query },
    ...{ cacheSalt, priority, identifiers },
  };
}

export function isolationOf(speech: UpstreamSpeech, local: boolean): Isolation {
  const { cacheSalt, priority, identifiers } = speech;
  return { cacheSalt, priority, identifiers: identifiers ?? (local ? "as_sent" : "hashed") };
}

type SaidSpeech = Pick<UpstreamSpeech, "api"> & {
  [Name in Exclude<keyof UpstreamSpeech, "api">]?: UpstreamSpeech[Name] | undefined;
};

/** Returns the first contradiction between `api` and `apis`, or undefined. */
export function speechFault({ api, apis }: Pick<UpstreamSpeech, "api" | "apis">): SpeechFault | undefined {
  if (api !== "messages" || !apis || apis.every((name) => name === "messages")) return undefined;
  const message = "must be messages alone where api is messages, as Anthropic's API is that one";
  return { message, fix: "Leave apis out, or write api: openai for a server that has OpenAI's APIs as well." };
}

interface SpeechFault {
  message: string;
  fix: string;
}

/** Returns engine formats for these names, each with all features of the vendor's API. */
export function formatsOf(names: readonly ApiName[]): EngineFormats {
  return Object.fromEntries(names.map((name) => [operationOf[name], "whole"]));
}

/** Returns the names of the formats in the usual order. If `formats` is undefined, only chat completions. */
export function apisOf(formats: EngineFormats | undefined): ApiName[] {
  return formats ? apiNames.filter((name) => formats[operationOf[name]] !== undefined) : ["chat"];
}

/** Reports whether the host belongs to OpenAI, or to Azure's service for OpenAI models. */
export function isOpenaiHost(hostname: string): boolean {
  return hostname === "api.openai.com" || hostname.endsWith(".openai.azure.com");
}
