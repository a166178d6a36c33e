// Schemas of upstreams in the API's requests and answers, as operators read, add, change and test them.
import { z } from "zod";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { identifierWays } from "../domain/models/isolation.ts";
import { maxModelsShown, upstreamDefaults, upstreamSources } from "../domain/models/upstream.ts";
import { apiNames, keyHeaders, upstreamApis } from "../domain/models/upstream-speech.ts";
import { upstreamAttemptsShape } from "./attempts.ts";
import { unixSeconds } from "./parts.ts";

export const healthStates = ["ok", "resting", "ready", "trying"] as const;
export type HealthState = (typeof healthStates)[number];

const name = z.string().min(1).max(63);
const url = z
  .string()
  .min(1)
  .max(2048)
  .describe("Base URL of the API, usually ending in `/v1`. With `api: messages` the `/v1` may be omitted.");
const apiKey = z.string().min(1).max(4096);
const discover = z.boolean().describe("True to serve the models that the upstream lists.");
const local = z
  .boolean()
  .describe(
    "True if keys with `never_leaves` may use the upstream, because it sends nothing on to other systems. The built-in engine is local.",
  );
const environmentList = z.array(z.enum(environments)).min(1).max(environments.length);
const seconds = z.int().min(1).max(86_400);
const maxConcurrency = z.int().min(1).max(1_000_000);
const api = z
  .enum(upstreamApis)
  .describe("API of the upstream: `openai`, which most servers use, or `messages` for Anthropic's.");
const apiList = z.array(z.enum(apiNames)).min(1).max(apiNames.length);
const keyHeader = z.enum(keyHeaders);
const query = z
  .record(z.string(), z.string())
  .describe("Query parameters added to every request, at most 20, such as `api-version` for Azure.");

const firstByte = "Seconds to wait for the first byte of an answer.";
const silence = "Seconds without data after which a started answer fails.";
const most = "Maximum number of concurrent requests. Further requests wait in the queue. null: measured automatically.";
const named =
  "Conversation formats that the upstream supports in full. Requests in other formats are translated. null: detected automatically.";
const sentIn =
  "Header for the API key: `authorization` as a bearer token, or `api-key` for Azure. null: `authorization`, or `x-api-key` if `api` is `messages`.";
const cacheSalt = z
  .boolean()
  .describe(
    "For vLLM: send a `cache_salt` with each request, different for each account, so that accounts do not share cached prompts.",
  );
const priority = z
  .boolean()
  .describe("For vLLM with `--scheduling-policy priority`: send a `priority` with each request.");
const identifierWay = z.enum(identifierWays);
const identifierText =
  "The form in which the upstream gets `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id`: `hashed` with the account, `as_sent` or `removed`. null: `as_sent` if the upstream is local, else `hashed`.";
const speech = {
  api: api.nullish().describe("API of the upstream: `messages` is Anthropic's. Default `openai`."),
  apis: apiList.nullish().describe(named),
  key_header: keyHeader.nullish().describe(sentIn),
  query: query.nullish(),
  cache_salt: cacheSalt.nullish(),
  priority: priority.nullish(),
  identifiers: identifierWay.nullish().describe(identifierText),
};
const whose = "Environments whose keys may use the upstream's discovered models.";

export const createUpstreamRequest = z
  .object({
    name: name.describe("Name in logs and records: lower-case letters, digits, dots, underscores and hyphens."),
    url,
    api_key: apiKey
      .nullish()
      .describe("API key, sent in the header of `key_header`. It is stored encrypted and not shown again."),
    discover: discover.nullish().describe("True to serve the models that the upstream lists. Default true."),
    local: local.nullish(),
    environments: environmentList.nullish().describe(`${whose} Default: \`${defaultEnvironments.join("`, `")}\`.`),
    timeout_seconds: seconds.nullish().describe(`${firstByte} Default ${upstreamDefaults.timeoutSeconds}.`),
    idle_seconds: seconds.nullish().describe(`${silence} Default ${upstreamDefaults.idleSeconds}.`),
    max_concurrency: maxConcurrency.nullish().describe(most),
    ...speech,
  })
  .meta({ id: "CreateUpstreamRequest" });
export type CreateUpstreamRequest = z.infer<typeof createUpstreamRequest>;

export const updateUpstreamRequest = z
  .object({
    url: url
      .optional()
      .describe("If the host, port or scheme changes and the upstream has a key, send `api_key` as well."),
    api_key: apiKey.nullish().describe("null removes the key."),
    discover: discover.optional(),
    local: local
      .optional()
      .describe("If `url` changes to another server and this member is omitted, it becomes false."),
    environments: environmentList.optional().describe(whose),
    timeout_seconds: seconds.optional().describe(firstByte),
    idle_seconds: seconds.optional().describe(silence),
    max_concurrency: maxConcurrency.nullish().describe(most),
    ...speech,
    api: api.optional(),
    draining: z
      .boolean()
      .optional()
      .describe(
        "While true, the upstream finishes its requests and gets no new ones. Allowed for every source. Survives a restart.",
      ),
  })
  .meta({ id: "UpdateUpstreamRequest", description: "Omitted members keep their values." });
export type UpdateUpstreamRequest = z.infer<typeof updateUpstreamRequest>;

export const upstreamShape = z
  .object({
    object: z.literal("upstream"),
    name: z.string(),
    url: z.string().nullable().describe("null for the built-in engine and for nodes."),
    source: z
      .enum(upstreamSources)
      .describe("Source of the upstream. `database`: changed by this API. `file`: changed only in headrace.yaml."),
    overrides_database: z
      .boolean()
      .describe(
        "True if an upstream with this name was also added by this API. It has no effect while the file has the name.",
      ),
    has_api_key: z.boolean(),
    discover,
    local,
    environments: z.array(z.enum(environments)).describe(whose),
    timeout_seconds: z.int().nullable().describe(`${firstByte} null for the built-in engine and for nodes.`),
    idle_seconds: z.int().nullable().describe(`${silence} null for the built-in engine and for nodes.`),
    max_concurrency: z.int().nullable().describe(most),
    api,
    apis: z
      .array(z.enum(apiNames))
      .describe("Conversation formats that the upstream supports, as configured or detected so far."),
    names_apis: z.boolean().describe("True if `apis` is configured. Otherwise the formats are detected automatically."),
    key_header: keyHeader.nullable().describe(sentIn),
    query,
    cache_salt: cacheSalt,
    priority,
    identifiers: identifierWay.nullable().describe(identifierText),
    state: z
      .enum(["ok", "unreachable", "draining", "starting"])
      .describe(
        "Result of the last poll, which runs every 30 s. `starting`: not polled yet. `draining` takes precedence over the others.",
      ),
    health: z
      .enum(healthStates)
      .describe(
        "Circuit breaker after failed connections. `resting`: other deployments come first. `trying`: one request or probe is testing the upstream. `ready`: the next request or probe will test it.",
      ),
    models: z.int().describe("Number of models that the upstream listed when it was last reached."),
    running: z.int().describe("Number of running requests."),
    waiting: z.int().describe("Number of requests that wait for a free slot."),
    concurrency: z.int().nullable().describe("Current limit of concurrent requests. null before the first request."),
    load: z
      .object({
        running: z.int().describe("Number of running requests of all clients."),
        waiting: z.int().describe("Number of requests in the upstream's own queue."),
        cache_use: z.number().nullable().describe("Used share of the KV cache, 0 to 1."),
        cache_hits: z.number().nullable().describe("Share of prompt tokens found in the prefix cache, 0 to 1."),
      })
      .nullable()
      .describe(
        "Figures from the upstream's own metrics, for vLLM, SGLang and llama-server. null without recent figures.",
      ),
    error: z.string().nullable().describe("Reason why the upstream cannot be reached."),
    attempts: upstreamAttemptsShape
      .nullable()
      .describe("State of the upstream as the attempts of real requests show it. null without recent attempts."),
    created_at: unixSeconds.nullable().describe("null for upstreams that were not added by this API."),
  })
  .meta({ id: "Upstream" });
export type UpstreamWire = z.infer<typeof upstreamShape>;

export const upstreamTestRequest = z
  .object({
    name: name.optional().describe("Name of an existing upstream. No other member is allowed with it."),
    url: url.optional().describe("URL of a server to test. No stored key is sent to it."),
    api_key: apiKey.nullish().describe("Only with `url`, like the members that follow."),
    ...speech,
  })
  .meta({ id: "UpstreamTestRequest", description: "Needs either `name` or `url`." });
export type UpstreamTestRequest = z.infer<typeof upstreamTestRequest>;

export const upstreamTestShape = z
  .object({
    object: z.literal("upstream_test"),
    ok: z.boolean(),
    duration_ms: z.int(),
    models: z.array(z.string()).describe(`Ids of the models, at most ${maxModelsShown}.`),
    apis: z.array(z.enum(apiNames)).describe("Conversation formats that the upstream supports. Empty if it is not ok."),
    error: z.string().nullable().describe("Error message. null if the upstream is ok."),
  })
  .meta({ id: "UpstreamTest" });
export type UpstreamTestWire = z.infer<typeof upstreamTestShape>;
