// The shapes of upstreams on the wire, as operators read, add, change and test them.
import { z } from "zod";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { identifierWays } from "../domain/models/isolation.ts";
import { upstreamDefaults, upstreamSources } from "../domain/models/upstream.ts";
import { apiNames, keyHeaders, upstreamApis } from "../domain/models/upstream-speech.ts";
import { unixSeconds } from "./parts.ts";

export const healthStates = ["ok", "resting", "ready", "trying"] as const;
export type HealthState = (typeof healthStates)[number];

const name = z.string().min(1).max(63);
const url = z
  .string()
  .min(1)
  .max(2048)
  .describe("Base URL of its API, nearly always ending in `/v1`, which may be left out where `api` is `messages`.");
const apiKey = z.string().min(1).max(4096);
const discover = z.boolean().describe("Whether the models that it lists are served.");
const local = z
  .boolean()
  .describe(
    "Whether requests of keys with `never_leaves` may go there, as nothing that it is sent goes further. The built-in engine is local.",
  );
const environmentList = z.array(z.enum(environments)).min(1).max(environments.length);
const seconds = z.int().min(1).max(86_400);
const maxConcurrency = z.int().min(1).max(1_000_000);
const api = z
  .enum(upstreamApis)
  .describe("The API that it speaks: `openai`, as most servers do, or `messages`, Anthropic's own.");
const apiList = z.array(z.enum(apiNames)).min(1).max(apiNames.length);
const keyHeader = z.enum(keyHeaders);
const query = z
  .record(z.string(), z.string())
  .describe("At most 20 parameters that the path of every request to it ends with, such as `api-version` of Azure.");

const firstByte = "Seconds to wait for the first byte of an answer.";
const silence = "Seconds for which a begun answer may be silent.";
const most = "Most requests at once; more wait in the queue. null: measured.";
const named =
  "Formats of conversations that it has, each with all that its maker has in it; requests in the others are translated. null: it is asked what it has.";
const sentIn =
  "Header that the key is sent in: `authorization` as a bearer token, `api-key` for Azure. null: `authorization`, or `x-api-key` where `api` is `messages`.";
const cacheSalt = z
  .boolean()
  .describe(
    "Whether each request has vLLM's `cache_salt`, another one for each account: no account finds in its cache what another asked.",
  );
const priority = z
  .boolean()
  .describe("Whether each request has vLLM's `priority`, for a server with `--scheduling-policy priority`.");
const identifierWay = z.enum(identifierWays);
const identifierText =
  "What `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` become: `hashed`, with the account, `as_sent` or `removed`. null: as sent where it is local, else hashed.";
const speech = {
  api: api.nullish().describe("The API that it speaks: `messages` is Anthropic's own. Default `openai`."),
  apis: apiList.nullish().describe(named),
  key_header: keyHeader.nullish().describe(sentIn),
  query: query.nullish(),
  cache_salt: cacheSalt.nullish(),
  priority: priority.nullish(),
  identifiers: identifierWay.nullish().describe(identifierText),
};
const whose = "Environments whose keys may use its discovered models.";

export const createUpstreamRequest = z
  .object({
    name: name.describe("For logs and records: lower-case letters, digits, dots, underscores and hyphens."),
    url,
    api_key: apiKey.nullish().describe("Sent to it as `key_header` says. It is kept sealed and not shown again."),
    discover: discover.nullish().describe("Whether to serve the models that it lists. Default true."),
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
    url: url.optional().describe("At another host, port or scheme only with `api_key`, if it has one."),
    api_key: apiKey.nullish().describe("null removes it."),
    discover: discover.optional(),
    local: local.optional().describe("Becomes false where `url` moves to another server, unless it is there as well."),
    environments: environmentList.optional().describe(whose),
    timeout_seconds: seconds.optional().describe(firstByte),
    idle_seconds: seconds.optional().describe(silence),
    max_concurrency: maxConcurrency.nullish().describe(most),
    ...speech,
    api: api.optional(),
    draining: z
      .boolean()
      .optional()
      .describe("While true, it finishes what it has and gets nothing new. For every source; kept over a restart."),
  })
  .meta({ id: "UpdateUpstreamRequest", description: "What is left out stays as it is." });
export type UpdateUpstreamRequest = z.infer<typeof updateUpstreamRequest>;

export const upstreamShape = z
  .object({
    object: z.literal("upstream"),
    name: z.string(),
    url: z.string().nullable().describe("null for the built-in engine and for nodes."),
    source: z
      .enum(upstreamSources)
      .describe("Where it comes from. Those of `database` are changed here, those of `file` in headrace.yaml alone."),
    overrides_database: z
      .boolean()
      .describe("Whether one of this name was added here as well, which does not count while the file has the name."),
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
      .describe("Formats of conversations that it has, as far as is known now: as it was told, or as it was asked."),
    names_apis: z.boolean().describe("Whether its settings name `apis`; else it is asked what it has."),
    key_header: keyHeader.nullable().describe(sentIn),
    query,
    cache_salt: cacheSalt,
    priority,
    identifiers: identifierWay.nullable().describe(identifierText),
    state: z
      .enum(["ok", "unreachable", "draining", "starting"])
      .describe(
        "What the last look found, every 30 s; `starting`: it was not asked yet. `draining` comes before the others.",
      ),
    health: z
      .enum(healthStates)
      .describe(
        "`resting`: it could not be reached a moment ago, and other deployments come first; `trying`: its rest is over, and one request or probe finds out; `ready`: the next one will.",
      ),
    models: z.int().describe("How many models it listed when it was last reached."),
    running: z.int().describe("Requests that it works on."),
    waiting: z.int().describe("Requests that wait for a place."),
    concurrency: z.int().nullable().describe("How many it takes at once now; null where nothing was sent to it yet."),
    load: z
      .object({
        running: z.int().describe("Requests that it works on, whoever sent them."),
        waiting: z.int().describe("Requests that wait inside of it."),
        cache_use: z.number().nullable().describe("Part of its memory for prompts that is taken, 0 to 1."),
        cache_hits: z.number().nullable().describe("Part of the prompt tokens that it found there, 0 to 1."),
      })
      .nullable()
      .describe("What it says itself in its metrics, as vLLM, SGLang and llama-server do; null where nothing lately."),
    error: z.string().nullable().describe("Why it cannot be reached."),
    created_at: unixSeconds.nullable().describe("null for those that were not added here."),
  })
  .meta({ id: "Upstream" });
export type UpstreamWire = z.infer<typeof upstreamShape>;

export const upstreamTestRequest = z
  .object({
    name: name.optional().describe("The name of an upstream that there is; alone."),
    url: url.optional().describe("The address of a server to try; no stored key is sent to it."),
    api_key: apiKey.nullish().describe("Only with `url`, as are those that follow."),
    ...speech,
  })
  .meta({ id: "UpstreamTestRequest", description: "Either `name` or `url`." });
export type UpstreamTestRequest = z.infer<typeof upstreamTestRequest>;

export const maxModelsShown = 1000;

export const upstreamTestShape = z
  .object({
    object: z.literal("upstream_test"),
    ok: z.boolean(),
    duration_ms: z.int(),
    models: z.array(z.string()).describe(`Ids of its models, at most ${maxModelsShown}.`),
    apis: z.array(z.enum(apiNames)).describe("Formats of conversations that it has; none where it is not ok."),
    error: z.string().nullable().describe("What went wrong; null where it is ok."),
  })
  .meta({ id: "UpstreamTest" });
export type UpstreamTestWire = z.infer<typeof upstreamTestShape>;
