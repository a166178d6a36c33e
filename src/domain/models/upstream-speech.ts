// How a model server is spoken to: which APIs it has, by which header it knows us, and what each path ends with.
import type { EngineFormats } from "./engine.ts";
import type { IdentifierWay, Isolation } from "./isolation.ts";
import type { ConversationOperation } from "./operation.ts";

/** `openai`: the API of most servers; `messages`: Anthropic's own, with headers and a list of models of its own. */
export const upstreamApis = ["openai", "messages"] as const;
export type UpstreamApi = (typeof upstreamApis)[number];

/** The formats of conversations, as settings and answers name them. */
export const apiNames = ["chat", "responses", "messages"] as const;
export type ApiName = (typeof apiNames)[number];

const operationOf = {
  chat: "chat",
  responses: "response",
  messages: "message",
} as const satisfies Record<ApiName, ConversationOperation>;

/** Headers that a key is sent in; as `authorization` it is a bearer token. */
export const keyHeaders = ["authorization", "api-key", "x-api-key"] as const;
export type KeyHeader = (typeof keyHeaders)[number];

/** What a parameter of the query may be, so that every server reads the same. */
export const queryNamePattern = /^[\w.~-]{1,64}$/;
export const queryValuePattern = /^[!-~]{1,256}$/;

export interface UpstreamSpeech {
  api: UpstreamApi;
  /** null: those that it turns out to have. */
  apis: readonly ApiName[] | null;
  /** null: the usual one of its `api`. */
  keyHeader: KeyHeader | null;
  /** Parameters that the path of every request to it ends with. */
  query: Readonly<Record<string, string>>;
  /** vLLM's; for a server that takes it. */
  cacheSalt: boolean;
  /** That of vLLM with `--scheduling-policy priority`; likewise. */
  priority: boolean;
  /** null: as sent where the server is marked as local, else hashed. */
  identifiers: IdentifierWay | null;
}

export const usualSpeech: UpstreamSpeech = {
  ...{ api: "openai", apis: null, keyHeader: null, query: {} },
  ...{ cacheSalt: false, priority: false, identifiers: null },
};

/** These members alone, of settings that have more; what is not said is as usual. */
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

/** What the members must agree on; undefined where they do. */
export function speechFault({ api, apis }: Pick<UpstreamSpeech, "api" | "apis">): SpeechFault | undefined {
  if (api !== "messages" || !apis || apis.every((name) => name === "messages")) return undefined;
  const message = "must be messages alone where api is messages, as Anthropic's API is that one";
  return { message, fix: "Leave apis out, or write api: openai for a server that has OpenAI's APIs as well." };
}

interface SpeechFault {
  message: string;
  fix: string;
}

/** All that the maker of each of these has in it. */
export function formatsOf(names: readonly ApiName[]): EngineFormats {
  return Object.fromEntries(names.map((name) => [operationOf[name], "whole"]));
}

/** In the usual order. An engine that says nothing speaks chat completions. */
export function apisOf(formats: EngineFormats | undefined): ApiName[] {
  return formats ? apiNames.filter((name) => formats[operationOf[name]] !== undefined) : ["chat"];
}
