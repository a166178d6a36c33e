// The client libraries that users have, pointed at a test server; without retries unless a test is about them.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, type ChatOpenAIFields, OpenAIEmbeddings } from "@langchain/openai";
import OpenAI, { type ClientOptions } from "openai";

/** What a client needs to know of a server. */
export interface Reachable {
  /** Without `/v1`. */
  url: string;
  key: string;
}

export function openaiClient(server: Reachable, options: ClientOptions = {}): OpenAI {
  return new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0, logLevel: "off", ...options });
}

/** `ai` takes the number of retries with every call. */
export function aiProvider(server: Reachable) {
  return createOpenAICompatible({
    name: "headrace",
    baseURL: `${server.url}/v1`,
    apiKey: server.key,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
}

export function langchainChat(server: Reachable, fields: ChatOpenAIFields): ChatOpenAI {
  return new ChatOpenAI({
    apiKey: server.key,
    configuration: { baseURL: `${server.url}/v1`, logLevel: "off" },
    maxRetries: 0,
    ...fields,
  });
}

export function langchainEmbeddings(
  server: Reachable,
  fields: ConstructorParameters<typeof OpenAIEmbeddings>[0],
): OpenAIEmbeddings {
  return new OpenAIEmbeddings({
    apiKey: server.key,
    configuration: { baseURL: `${server.url}/v1`, logLevel: "off" },
    maxRetries: 0,
    ...fields,
  });
}
