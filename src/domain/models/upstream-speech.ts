// The settings for requests to a model server: its APIs, the header that carries the API key, and query parameters.
import type { EngineFormats } from "./engine.ts";
import type { IdentifierWay, Isolation } from "./isolation.ts";
import type { ConversationOperation } from "./operation.ts";

/** `openai`: the API of most servers; `messages`: Anthropic's own, with headers and a list of models of its own. */
export const upstreamApis = ["openai", "messages"] as const;
export type UpstreamApi = (typeof upstreamApis)[number];

/** The conversation formats, as settings and answers name them. */
export const apiNames = ["chat", "responses", "messages"] as const;
export type ApiName = (typeof apiNames)[number];

const operationOf = {
  chat: "chat",
  responses: "response",
  messages: "message",
} as const satisfies Record<ApiName, ConversationOperation>;

/** Headers that can carry the API key; `authorization` sends it as a bearer token. */
export const keyHeaders = ["authorization", "api-key", "x-api-key"] as const;
export type KeyHeader = (typeof keyHeaders)[number];

/** Allowed query parameters: characters that every server reads alike. */
export const queryNamePattern = /^[\w.~-]{1,64}$/;
export const queryValuePattern = /^[!-~]{1,256}$/;

export interface UpstreamSpeech {
  api: UpstreamApi;
  /** null: the APIs are detected. */
  apis: readonly ApiName[] | null;
  /** null: the default header of `api`. */
  keyHeader: KeyHeader | null;
  /** Query parameters of every request. */
  query: Readonly<Record<string, string>>;
  /** True for vLLM: send a `cache_salt`. */
  cacheSalt: boolean;
  /** True for vLLM with `--scheduling-policy priority`: send a `priority`. */
  priority: boolean;
  /** null: as sent if the server is local, otherwise hashed. */
  identifiers: IdentifierWay | null;
}

export const usualSpeech: UpstreamSpeech = {
  ...{ api: "openai", apis: null, keyHeader: null, query: {} },
  ...{ cacheSalt: false, priority: false, identifiers: null },
};

/** Returns the `UpstreamSpeech` members of settings that have further members, with defaults for missing ones. */
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

/** Returns the first contradiction of the members, or undefined. */
export function speechFault({ api, apis }: Pick<UpstreamSpeech, "api" | "apis">): SpeechFault | undefined {
  if (api !== "messages" || !apis || apis.every((name) => name === "messages")) return undefined;
  const message = "must be messages alone where api is messages, as Anthropic's API is that one";
  return { message, fix: "Leave apis out, or write api: openai for a server that has OpenAI's APIs as well." };
}

interface SpeechFault {
  message: string;
  fix: string;
}

/** Returns the formats by name, each with all features of the vendor's API. */
export function formatsOf(names: readonly ApiName[]): EngineFormats {
  return Object.fromEntries(names.map((name) => [operationOf[name], "whole"]));
}

/** Returns the formats in the usual order. An engine without a setting uses chat completions. */
export function apisOf(formats: EngineFormats | undefined): ApiName[] {
  return formats ? apiNames.filter((name) => formats[operationOf[name]] !== undefined) : ["chat"];
}

/** Reports whether a host is OpenAI's own, or Azure's for OpenAI's models. */
export function isOpenaiHost(hostname: string): boolean {
  return hostname === "api.openai.com" || hostname.endsWith(".openai.azure.com");
}
