// The schema of headrace.yaml. Validation, the published JSON schema and the reference page all use it.

import * as z from "zod";
import { defaultMaxBufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { logLevels } from "../base/log.ts";
import { parseHttpUrl } from "../base/text/http-url.ts";
import { defaultTierEnvironments } from "../domain/account.ts";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { tagPattern } from "../domain/key-tags.ts";
import { type Amount, amountSentence, byWire, optionalAmounts, requiredAmounts } from "../domain/limits/amounts.ts";
import {
  maxQuotaModels,
  maxQuotas,
  maxSpanSeconds,
  minSpanSeconds,
  namedSpans,
  quotaUnits,
  windowKinds,
} from "../domain/limits/quota-rules.ts";
import { byCapability } from "../domain/models/capabilities.ts";
import { builtInEngineName } from "../domain/models/engine.ts";
import { identifierWays } from "../domain/models/isolation.ts";
import {
  aliasPattern,
  aliasText,
  maxAliases,
  maxContext,
  maxFallbacks,
  maxModelIdLength,
  maxWeight,
} from "../domain/models/model-entry.ts";
import { maxModelPatternLength, modelPatternPattern } from "../domain/models/model-patterns.ts";
import { defaultPriority, priorities } from "../domain/models/policies/priority.ts";
import { maxRefusedMembers, memberNamePattern, rulingMembers } from "../domain/models/ruling-members.ts";
import { upstreamDefaults, upstreamNamePattern } from "../domain/models/upstream.ts";
import {
  apiNames,
  keyHeaders,
  queryNamePattern,
  queryValuePattern,
  upstreamApis,
  usualSpeech,
} from "../domain/models/upstream-speech.ts";
import { maxMetadataTags, maxRequestTagLength, metadataNamePattern } from "../domain/usage/request-tags.ts";
import { commands, files, memory } from "./command-schema.ts";
import {
  entry,
  field,
  list,
  mapping,
  oneOf,
  orLeftOut,
  printablePattern,
  said,
  share,
  trueOrFalse,
  unlimitable,
  whole,
} from "./field.ts";
import { isExactOrigin } from "./formats.ts";
import { type Option, options } from "./options.ts";
import { price } from "./price-schema.ts";
import { batches, files as storedFiles } from "./sections/batch-schema.ts";
import { cache } from "./sections/cache-schema.ts";
import { audit, exportSection, otlpHeaders } from "./sections/export-schema.ts";
import { featureSchemas, reloadableFeatureKeys } from "./sections/feature-sections.ts";
import { oauth } from "./sections/oauth-schema.ts";
import { policies } from "./sections/policy-schema.ts";
import { sso } from "./sections/sso-schema.ts";
import { tools } from "./sections/tool-schema.ts";

const namePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const nameText = "1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit";

/**
 * Returns the schema of a start-up option's key. Its default is only for editors: `loadConfig` applies the default
 * after flags and variables.
 */
function inFile<S extends z.ZodType>(option: Option<S>): z.ZodOptional<S> {
  const optional = option.schema.optional();
  return option.default === undefined ? optional : optional.meta({ default: option.default });
}

const flag = (doc: string): z.ZodBoolean => said(doc, trueOrFalse());

const seconds = (doc: string, example: number): z.ZodInt =>
  said(doc, orLeftOut(whole([1, 86_400], example, "seconds")));

/** Returns the schema of a bounded number. Its default is also shown as the example. */
const bound = (doc: string, [least, most, usual]: readonly [number, number, number], unit?: string) =>
  said(doc, whole([least, most], usual, unit)).default(usual);

const upstream = field(
  z.strictObject({
    name: field(z.string().regex(upstreamNamePattern), {
      doc: "Name for logs and for the deployments of models.",
      must: nameText,
      fix: "Give a name such as ollama.",
    }),
    url: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "Base URL of the API, usually ending in `/v1`. With `api: messages` the `/v1` may be left out.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as http://127.0.0.1:11434/v1. Where it had a user or password: a key goes under api_key.",
        quiet: true,
      },
    ),
    api_key: field(z.string().regex(printablePattern), {
      doc: `API key, sent in the header that \`key_header\` names. Keep it out of the file: \`\${NAME}\` takes it from a variable.`,
      must: "printable ASCII characters without spaces or line breaks",
      fix: "Check the value for blanks and line breaks, or leave the key out if the server wants none.",
      quiet: true,
    }).optional(),
    api: said(
      "API of the server: `openai`, or `messages` for Anthropic's API with its headers and list of models.",
      oneOf(upstreamApis),
    ).default(usualSpeech.api),
    apis: field(
      z.array(said("A conversation format.", oneOf(apiNames))).min(1),
      list(
        "Conversation formats that the server supports in full. Requests in other formats are translated. Default: detected automatically.",
        "chat, responses and messages, with one entry at least",
        "Write a list such as [chat, responses], or leave it out.",
      ),
    ).optional(),
    key_header: said(
      "Header for the API key: `authorization` as a bearer token, or `api-key` for Azure. Default: `authorization`, or `x-api-key` with `api: messages`.",
      orLeftOut(oneOf(keyHeaders)),
    ).optional(),
    query: field(
      z.record(
        z.string().regex(queryNamePattern),
        field(z.string().regex(queryValuePattern), {
          doc: "A parameter.",
          must: "a name of letters, digits, hyphens, dots and underscores, with 1 to 256 printable ASCII characters without spaces",
          fix: 'Write a text such as api-version: preview; a number stands in quotes, such as "1".',
          quiet: true,
        }),
      ),
      mapping("Query parameters added to every request, such as `api-version` for Azure."),
    ).optional(),
    cache_salt: flag(
      "For vLLM: send a `cache_salt` with each request, different for each account, so that accounts do not share cached prompts.",
    ).default(usualSpeech.cacheSalt),
    priority: flag("For vLLM with `--scheduling-policy priority`: send a `priority` with each request.").default(
      usualSpeech.priority,
    ),
    identifiers: said(
      "How `user`, `safety_identifier`, `prompt_cache_key` and, in Messages, `metadata.user_id` are sent: `hashed` together with the account, `as_sent` or `removed`. Default: `as_sent` if the upstream is `local`, otherwise `hashed`.",
      orLeftOut(oneOf(identifierWays)),
    ).optional(),
    discover: flag("Read `/models` of the server regularly, and serve all models that it lists.").default(true),
    local: flag("The server sends nothing on to other systems, so keys with `never_leaves` may use it.").default(false),
    timeout_seconds: seconds("Seconds to wait for the first byte of an answer.", 600).default(
      upstreamDefaults.timeoutSeconds,
    ),
    idle_seconds: seconds("Seconds without data after which a started answer fails.", 900).default(
      upstreamDefaults.idleSeconds,
    ),
    max_concurrency: field(z.int().min(1).max(1_000_000), {
      doc: "Maximum number of concurrent requests. Further requests wait in the queue. Default: measured automatically.",
      must: "a whole number, 1 or more",
      fix: "Give a number such as 8, or leave it out.",
    }).optional(),
    http_client: said(
      "HTTP client for this server: Headrace's own, or the `fetch` of Bun if the server does not work with it.",
      { ...oneOf(["own", "fetch"]), fix: "Write fetch, or leave it out." },
    ).default("own"),
  }),
  entry("A model server.", "name and url"),
);

const deployment = field(
  z.strictObject({
    upstream: field(z.string().min(1), {
      doc: `Name of an upstream, or \`${builtInEngineName}\` for the built-in engine.`,
      must: "the name of an upstream",
      fix: `Name an entry of upstreams, or ${builtInEngineName}.`,
    }),
    model: field(z.string().min(1).max(maxModelIdLength), {
      doc: "Id of the model at the upstream. Default: the public id.",
      must: "a model id of 1 to 256 characters",
      fix: "Give the id as the upstream lists it, or leave it out.",
    }).optional(),
    weight: said(
      "Share of the requests, relative to the other deployments.",
      orLeftOut(whole([1, maxWeight], 1)),
    ).default(1),
  }),
  entry("A deployment: the model at one upstream.", "upstream"),
);

const environmentList = (doc: string) =>
  field(
    z.array(said("An environment.", oneOf(environments))).min(1),
    list(doc, "live, test and dev, with one entry at least"),
  );

const model = field(
  z.strictObject({
    id: field(z.string().max(maxModelIdLength).regex(printablePattern), {
      doc: "The id that clients send.",
      must: "1 to 256 printable ASCII characters without spaces",
      fix: "Give an id such as llama-3.1-8b.",
    }),
    capabilities: field(
      z.strictObject(byCapability((meaning) => flag(meaning).exactOptional())),
      mapping("Abilities of the model. Abilities that are left out are unknown, and the server decides."),
    ).optional(),
    context: field(z.int().min(1).max(maxContext), {
      doc: "Context in tokens, prompt and completion together. Default: the upstream's value, or unlimited.",
      must: "a whole number of tokens, 1 or more",
      fix: "Give a number such as 8192, or leave it out.",
    }).optional(),
    environments: environmentList("Environments whose keys may use the model.").default([...defaultEnvironments]),
    price: price.optional(),
    price_of: field(z.string().min(1).max(maxModelIdLength), {
      doc: "A model in the price list, as `headrace prices` names it. Its price applies if `price` is not set.",
      must: "vendor/model as headrace prices lists it",
      fix: "Give a name such as openai/gpt-5, or leave it out.",
    }).optional(),
    owned_by: field(z.string().min(1).max(256), {
      doc: "Owner label in the model list. Default: the upstream's value.",
      must: "1 to 256 characters",
      fix: "Give a name, or leave it out.",
    }).optional(),
    fallbacks: field(
      z
        .array(
          field(z.string().max(maxModelIdLength).regex(printablePattern), {
            doc: "Id of a model.",
            must: "a model id of 1 to 256 printable ASCII characters without spaces",
            fix: "Give the id under which clients see it.",
          }),
        )
        .max(maxFallbacks),
      list(
        "Fallback models, tried in this order if all deployments of this model fail or are busy. The answer names the model that answered, and is charged at its price.",
        "model ids, 8 at most",
      ),
    ).default([]),
    aliases: field(
      z
        .array(
          field(z.string().max(maxModelIdLength).regex(aliasPattern), {
            doc: "Another name of the model, or a prefix ending in `*`.",
            must: aliasText,
            fix: 'Give a name such as gpt-5, or the beginning of names such as "claude-*".',
          }),
        )
        .max(maxAliases),
      list(
        "Other names that clients can send. A model with that id has precedence, then the exact alias, then the longest prefix. The answer names the real model, which is also used for counting and pricing.",
        "names, 32 at most",
      ),
    ).default([]),
    deployments: field(
      z.array(deployment).min(1),
      list(
        "Deployments of the model. Requests are distributed by weight. Default: every upstream and node that lists this id, and the built-in engine if it has the model.",
        "deployments, with one entry at least",
        "Begin each entry with a hyphen, such as - upstream: ollama, or leave the key out.",
      ),
    ).default([]),
    policies: policies.optional(),
  }),
  entry("A model as clients see it.", "id"),
);

const amount = (given: Amount): z.ZodNullable<z.ZodNumber> => {
  const isUsd = given.unit === "USD";
  return unlimitable(isUsd ? z.number().min(given.least) : z.int().min(given.least), {
    doc: `${amountSentence(given, "a")} per account and environment${isUsd ? ", by the prices of the models" : ""}.`,
    must: `a ${isUsd ? "number of USD" : "whole number"}, ${given.least} or more`,
    fix: `Give a number such as ${given.example}, or null.`,
  });
};

const tagText = `1 to ${maxRequestTagLength} letters, digits and . _ : @ / = + -, beginning with a letter or digit`;

const quota = field(
  z.strictObject({
    unit: said("Unit of the amount. USD is counted by the prices of the models.", oneOf(quotaUnits)),
    amount: field(z.number().min(0), {
      doc: "Amount of requests, tokens or USD, for each environment of the account.",
      must: "a number, 0 or more",
      fix: "Give a number such as 1000.",
    }),
    per: field(z.union([z.enum(namedSpans), z.int().min(minSpanSeconds).max(maxSpanSeconds)]), {
      doc: "Length of the window: a named span, or seconds.",
      must: `${namedSpans.join(", ")} or whole seconds from ${minSpanSeconds} to ${maxSpanSeconds}`,
      fix: "Write a span such as day, or seconds such as 86400.",
    }),
    window: said(
      "Start of the window: `calendar` in UTC, with weeks from Monday, or `rolling` from the first use, with months of 30 days. Default: `calendar`, or `rolling` for `5h` and seconds, which are no calendar spans.",
      orLeftOut(oneOf(windowKinds)),
    ).optional(),
    models: field(
      z
        .array(
          field(z.string().max(maxModelPatternLength).regex(modelPatternPattern), {
            doc: "A model id, or a prefix ending in `*`.",
            must: "a model id, or the beginning of one with an asterisk behind it",
            fix: "Write an id such as assistant, or gpt-* for all that begin with gpt-.",
          }),
        )
        .min(1)
        .max(maxQuotaModels),
      list(
        "Models that the quota counts. Default: all.",
        `1 to ${maxQuotaModels} ids or beginnings of ids`,
        "Write a list such as [gpt-*], or leave it out.",
      ),
    ).optional(),
    tag: field(z.string().max(maxRequestTagLength).regex(tagPattern), {
      doc: "Count only requests with this tag. Default: all requests.",
      must: tagText,
      fix: "Write a tag such as team-a, or leave it out.",
    }).optional(),
    hard_stop: field(z.boolean(), {
      doc: "Cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.",
      must: "true or false",
      fix: "Write true, or leave it out.",
    }).optional(),
  }),
  entry("A quota.", "unit, amount and per"),
);

const tier = field(
  z.strictObject({
    name: field(z.string().regex(namePattern), {
      doc: "Name of the tier. `free`, `pro` and `enterprise` exist and can be changed.",
      must: nameText,
      fix: "Give a name such as pro.",
    }),
    ...byWire(requiredAmounts, amount),
    ...byWire(optionalAmounts, (given) => amount(given).default(null)),
    quotas: field(
      z.array(quota).max(maxQuotas),
      list("Quotas in addition to the monthly limits. All of them apply.", `${maxQuotas} quotas at most`),
    ).default([]),
    environments: environmentList(
      "Environments in which these limits apply. The other environments have no limits.",
    ).default([...defaultTierEnvironments]),
    priority: field(z.enum(priorities), {
      doc: "Highest priority of requests of these accounts in all environments, and the default priority.",
      must: `one of ${priorities.join(", ")}`,
      fix: "Write high for those that are served first, low for those that can wait, or leave it out.",
    }).default(defaultPriority),
  }),
  entry("Limits for the accounts of this tier.", "name, requests_per_minute and tokens_per_minute"),
);

const limits = field(
  z.strictObject({
    body_bytes: bound(
      "Maximum size of a request body in bytes. Larger ones get 413.",
      [1024, 1_073_741_824, 33_554_432],
      "bytes",
    ),
    messages: bound("Maximum number of messages in one chat request. More get 400.", [1, 1_000_000, 2048]),
    depth: bound("Maximum nesting depth of a JSON body. Deeper ones get 400.", [8, 1000, 64]),
    refused_members: field(
      z
        .array(
          field(z.string().regex(memberNamePattern), {
            doc: "Name of a member at the top of a request's body.",
            must: "a name of 1 to 64 lower-case letters, digits, underscores, dots or hyphens",
            fix: "Give a name such as service_tier.",
          }),
        )
        .max(maxRefusedMembers),
      list(
        "Members of inference requests that are refused with 400, such as `service_tier` if the expensive tier is not wanted. The list replaces the default, which has the members that control a model server. `null` is always passed on, as are `-1` in `id_slot`, `slot_id` and `data_parallel_rank`, `false` in `return_hidden_states` and an empty `chat_template`. `file_id`, `file_ids` and `vector_store_ids` are also refused in prompt parts and tools. Empty: all members are passed on.",
        `names, ${maxRefusedMembers} at most`,
      ),
    ).default([...rulingMembers]),
    queue: bound("Maximum number of requests that wait for one upstream or model. More get 503.", [0, 100_000, 512]),
    queue_seconds: seconds(
      "Maximum time in the queue. Requests with a longer expected wait get 503 immediately.",
      30,
    ).default(30),
    open_requests_per_key: bound(
      "Maximum number of open requests of one key in each server process, including answers that are still being received. More get 429.",
      [1, 1_000_000, 1000],
    ),
    held_bytes: bound(
      "Maximum memory in bytes for requests and answers in each server process, at least four times `body_bytes`. One key may use 29 % of it, one account 44 %. More get 429 or 503.",
      [16_777_216, 68_719_476_736, defaultMaxBufferedBytes],
      "bytes",
    ),
    form_bytes: bound(
      "Maximum size in bytes of a form with files, such as a recording to transcribe. Larger ones get 413.",
      [1024, 1_099_511_627_776, 2_147_483_648],
      "bytes",
    ),
    form_memory_bytes: bound(
      "Maximum bytes of one form in memory. A larger form is stored in the data directory until its request ends.",
      [0, 16_777_216, 524_288],
      "bytes",
    ),
    form_disk_bytes: bound(
      "Maximum bytes of forms on disk at the same time, at least `form_bytes`. One account may use half of it, or one form. More get 429 or 503.",
      [0, 1_099_511_627_776, 8_589_934_592],
      "bytes",
    ),
  }),
  mapping("Maximum sizes, waiting times, open requests and memory."),
);

const tags = field(
  z.strictObject({
    metadata: field(
      z
        .array(
          field(z.string().regex(metadataNamePattern), {
            doc: "A member of `metadata`.",
            must: "1 to 32 letters, digits, dots, underscores and hyphens, beginning with a letter or digit, and neither asked nor gateway",
            fix: "Write a name such as team.",
          }),
        )
        .max(maxMetadataTags),
      list(
        "Members of a request's `metadata` that become tags of the form `name:value`. Default: none.",
        `${maxMetadataTags} names at most`,
        "Write a list such as [team, project].",
      ),
    ).default([]),
    user: flag(
      "Count requests under `user:name` for the end user that they name: `safety_identifier`, `user`, or `user_id` of `metadata`. The records then contain these ids, so use ones that do not identify people.",
    ).default(false),
    most_a_day: bound(
      "Maximum number of new tags per account, environment and day (UTC) in each server process. Tags of keys and quotas do not count. Further tags are counted as `other`.",
      [0, 100_000, 1_000],
    ),
  }),
  mapping("Tags of requests, in addition to the tags of their keys and of the header `x-headrace-tags`."),
);

const storedChats = field(
  z.strictObject({
    retention_days: bound(
      "Days to keep chat completions with `store: true` and responses without `store: false`. 0: nothing is stored, even if a request asks for it.",
      [0, 3650, 30],
      "days",
    ),
    account_bytes: bound(
      "Maximum number of characters in all stored chats, responses and conversations of an account together. Above it, responses say `store: false` and are not stored.",
      [1024, 1_125_899_906_842_624, 10_737_418_240],
      "bytes",
    ),
  }),
  mapping("Stored chat completions and responses."),
);

const days = (doc: string, [least, example]: readonly [number, number], usual: number | null) =>
  field(z.int().min(least).max(3650), {
    doc,
    must: `a whole number of days from ${least} to 3650, or null to keep them for good`,
    fix: `Give a number such as ${example}, or null.`,
  })
    .nullable()
    .meta({ description: doc })
    .optional()
    .meta({ default: usual });

/** Default days to keep records. Null means that they are kept forever. */
export const retentionDefaults = { requests: 400, hourly_usage: null, refusals: 400, audit: null } as const;

const retention = field(
  z.strictObject({
    requests_days: days(
      "Days to keep single requests, as listed by `GET /v1/requests`. Usage totals are kept, so reports and quotas do not change.",
      [7, 90],
      retentionDefaults.requests,
    ),
    hourly_usage_days: days(
      "Days to keep hourly usage, at least `requests_days`. Daily usage is kept permanently.",
      [32, 730],
      retentionDefaults.hourly_usage,
    ),
    refusals_days: days("Days to keep counts of refused requests.", [7, 90], retentionDefaults.refusals),
    audit_days: days("Days to keep the audit log.", [30, 730], retentionDefaults.audit),
  }),
  mapping("Retention of records. Older records are deleted in the background, a whole day at a time. null: never."),
);

const cors = field(
  z.strictObject({
    origins: field(
      z.array(
        field(
          z.string().refine((text) => text === "*" || isExactOrigin(text)),
          {
            doc: "An origin.",
            must: 'an origin such as https://app.example.com, without a slash at its end, or "*"',
            fix: 'Give scheme, host and any unusual port as browsers send them, in lower case; "*" allows every site.',
            quiet: true,
          },
        ),
      ),
      list('Sites whose pages may call the API: exact origins, or `"*"` for all.', "origins"),
    ).default([]),
  }),
  mapping("Calls from web pages."),
);

const logs = field(
  z.strictObject({
    level: said(
      "Lowest level to log. `--log-level` and `HEADRACE_LOG_LEVEL` take precedence.",
      oneOf(logLevels),
    ).default("info"),
    sample: said(
      "Share of successful requests to log. Errors, refused requests, requests that the client cancelled and slow requests are always logged.",
      share(),
    ).default(1),
    slow_seconds: field(z.number().min(0.001).max(86_400), {
      doc: "Seconds after which a request, including its answer, is logged as a warning with `slow=true`. Default: none.",
      must: "a number of seconds from 0.001 to 86400",
      fix: "Give a number such as 60, or leave it out.",
    }).optional(),
  }),
  mapping("The log."),
);

const tracing = field(
  z.strictObject({
    endpoint: inFile(options.otlpEndpoint),
    headers: otlpHeaders().optional(),
    protocol: said(
      "Encoding of traces: OTLP over HTTP with JSON, or with protobuf, which Phoenix requires.",
      oneOf(["http/json", "http/protobuf"]),
    ).default("http/json"),
    service_name: inFile(options.otelServiceName),
    sample: said("Share of requests to trace, among requests that do not belong to a trace yet.", share()).default(1),
    content: flag(
      "Include shortened prompts and answers in traces, and the ids that clients give their users and sessions.",
    ).default(false),
  }),
  mapping("OpenTelemetry traces."),
);

const mail = field(
  z.strictObject({ url: inFile(options.smtpUrl), from: inFile(options.mailFrom) }),
  mapping("Mail for invitations and password resets."),
);

export const fileSchema = field(
  z.strictObject({
    host: inFile(options.host),
    port: inFile(options.port),
    data_dir: inFile(options.dataDir),
    backup_before_upgrade: inFile(options.backupBeforeUpgrade),
    mode: inFile(options.mode),
    log_format: inFile(options.logFormat),
    public_url: inFile(options.publicUrl),
    trusted_proxies: inFile(options.trustedProxies),
    allowed_hosts: inFile(options.allowedHosts),
    advertise_url: inFile(options.advertiseUrl),
    workers: inFile(options.workers),
    lame_duck_seconds: inFile(options.lameDuckSeconds),
    discover_local: inFile(options.discoverLocal),
    webhook_loopback: inFile(options.webhookLoopback),
    webhook_networks: inFile(options.webhookNetworks),
    engine: field(
      z.strictObject({
        models: inFile(options.models),
        context: inFile(options.context),
        parallel: inFile(options.parallel),
        threads: inFile(options.threads),
        demo: inFile(options.demo),
        memory: memory.optional(),
        commands: commands.optional(),
        files: files.optional(),
      }),
      mapping("The built-in engine and commands that serve models."),
    ).optional(),
    upstreams: field(z.array(upstream), list("Model servers.", "upstreams")).default([]),
    models: field(z.array(model), list("Models with their own public ids.", "models")).default([]),
    ...featureSchemas,
    cache: cache.prefault({}),
    tiers: field(z.array(tier), list("Limits of accounts.", "tiers")).default([]),
    limits: limits.prefault({}),
    tags: tags.prefault({}),
    stored_chats: storedChats.prefault({}),
    files: storedFiles.prefault({}),
    batches: batches.prefault({}),
    tools: tools.prefault({}),
    retention: retention.prefault({}),
    cors: cors.prefault({}),
    logs: logs.prefault({}),
    tracing: tracing.optional(),
    audit: audit.prefault({}),
    export: exportSection.optional(),
    mail: mail.optional(),
    sso: sso.optional(),
    oauth: oauth.prefault({}),
  }),
  { doc: "Configuration of Headrace.", must: "a mapping of keys to values", fix: "Write lines such as `port: 7545`." },
);

export type FileData = z.output<typeof fileSchema>;

/** Keys that take effect without a restart. */
export const reloadableKeys: readonly string[] = [
  "upstreams",
  "models",
  ...reloadableFeatureKeys,
  "tiers",
  "limits",
  "tags",
  "stored_chats",
  "batches",
  "tools",
  "retention",
  "cors",
  "logs",
] satisfies (keyof FileData)[];
