// The shapes of API keys on the wire: records, and the requests that create, change and rotate keys.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { givenTagPattern, maxKeyTags, maxTagLength } from "../domain/key-tags.ts";
import { byWire, keyAmounts } from "../domain/limits/amounts.ts";
import { maxKeyModels, maxModelPatternLength, modelPatternPattern } from "../domain/models/model-patterns.ts";
import { responseCaches } from "../domain/models/policies/cache.ts";
import { priorities } from "../domain/models/policies/priority.ts";
import type { KeyStatus } from "../domain/principal.ts";
import { defaultScopes, scopes } from "../domain/scope.ts";
import { givenAmount } from "./amounts.ts";
import { unixSeconds } from "./parts.ts";
import { givenQuotas, shownQuotas, usedQuotas } from "./quotas.ts";
import { givenTools, shownTools } from "./tools/tool-lists.ts";

/** Later is a mistake, such as milliseconds: the end of the year 9999. */
const latestTime = 253_402_300_799;
const maxLifeSeconds = 3_153_600_000;

export const defaultOverlapSeconds = 86_400;
export const defaultWindowSeconds = 60;
const maxOverlapSeconds = 2_592_000;
const maxNoteLength = 1000;

const keyName = z.string().min(1).max(100).describe("What it is for; printable characters.");
const scopeList = z
  .array(z.enum(scopes))
  .min(1)
  .max(20)
  .describe(`What it may do. Default: \`${defaultScopes.join(" ")}\`, as far as the maker may.`);
const expiresAt = z.int().min(1).max(latestTime).describe("When it expires, Unix time in seconds.");
const addressList = z
  .array(z.string().min(1).max(64))
  .max(100)
  .describe("IPv4 and IPv6 addresses and CIDR ranges from which it may be used; empty: from anywhere.");
const rateLimit = z.int().min(1).max(1_000_000).describe("Requests per `rate_limit_window`.");
const rateLimitWindow = z
  .int()
  .min(1)
  .max(86_400)
  .describe(`Seconds; default ${defaultWindowSeconds}. Only with \`rate_limit\`.`);
const modelList = z
  .array(z.string().min(1).max(maxModelPatternLength).regex(modelPatternPattern))
  .min(1)
  .max(maxKeyModels)
  .describe(
    "Ids of models that it may use, and beginnings of ids with an asterisk; an alias counts as the model that it stands for. null: all of its environment.",
  );
const neverLeaves = z
  .boolean()
  .describe(
    "Whether its requests go only to upstreams and nodes that an operator marked as local, and the built-in engine.",
  );
const priority = z
  .enum(priorities)
  .nullable()
  .describe(
    "The highest that its requests may have, within the priority of its account's tier, and the one of those that say none. null: that of the tier.",
  );
const responseCache = z
  .enum(responseCaches)
  .describe(
    "on: its requests get answers that are kept, also of models without a cache of their own; off: all of them are answered anew, and nothing is kept; null: as each model says.",
  );
const tagList = z
  .array(z.string().min(1).max(maxTagLength).regex(givenTagPattern))
  .max(maxKeyTags)
  .describe(
    "What its usage is counted under: letters, digits and `. _ : @ / = + -`, a letter or digit first; not `asked:` or `gateway:`, which are of the server itself.",
  );
const note = z.string().max(maxNoteLength).describe("What is to be known about it, for people; printable characters.");
const ownAmounts = byWire(keyAmounts, (amount) => givenAmount(amount).nullish());

export const keyStatuses = ["active", "expired", "revoked"] as const satisfies readonly KeyStatus[];

export const createKeyRequest = z
  .object({
    name: keyName,
    scopes: scopeList.nullish(),
    expires_at: expiresAt.nullish(),
    expires_in: z
      .int()
      .min(1)
      .max(maxLifeSeconds)
      .nullish()
      .describe("Seconds until it expires, in place of `expires_at`."),
    allowed_ips: addressList.nullish(),
    rate_limit: rateLimit.nullish(),
    rate_limit_window: rateLimitWindow.nullish(),
    ...ownAmounts,
    quotas: givenQuotas.nullish(),
    models: modelList.nullish(),
    tools: givenTools.nullish(),
    never_leaves: neverLeaves.nullish(),
    priority: priority.optional(),
    response_cache: responseCache.nullish(),
    tags: tagList.nullish(),
    note: note.nullish(),
  })
  .meta({ id: "CreateKeyRequest" });
export type CreateKeyRequest = z.infer<typeof createKeyRequest>;

export const updateKeyRequest = z
  .object({
    name: keyName.optional(),
    scopes: scopeList.optional(),
    expires_at: expiresAt.nullish(),
    allowed_ips: addressList.nullish(),
    rate_limit: rateLimit.nullish(),
    rate_limit_window: rateLimitWindow.nullish(),
    ...ownAmounts,
    quotas: givenQuotas.nullish(),
    models: modelList.nullish(),
    tools: givenTools.nullish(),
    never_leaves: neverLeaves.optional(),
    priority: priority.optional(),
    response_cache: responseCache.nullish(),
    tags: tagList.nullish(),
    note: note.nullish(),
  })
  .meta({ id: "UpdateKeyRequest", description: "What is left out stays as it is; null clears." });
export type UpdateKeyRequest = z.infer<typeof updateKeyRequest>;

export const rotateKeyRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .nullish()
      .describe(`How long the old key goes on working; 0: not at all. Default ${defaultOverlapSeconds}.`),
  })
  .meta({ id: "RotateKeyRequest" });

const keyMembers = {
  object: z.literal("api_key"),
  id: z.string(),
  name: z.string(),
  prefix: z.string(),
  last4: z.string().describe("The last four characters of the key."),
  environment: z.enum(environments),
  scopes: z.array(z.enum(scopes)),
  status: z.enum(keyStatuses).describe("Whether it works. A key ends at the latest with the key that made it."),
  created_by: z
    .string()
    .nullable()
    .describe("Id of the key or person that made it; null for those that neither did, such as the first."),
  created_at: unixSeconds,
  expires_at: unixSeconds.nullable(),
  last_used_at: unixSeconds.nullable(),
  revoked_at: unixSeconds.nullable().describe("In the future after a rotation: it works until then."),
  allowed_ips: z.array(z.string()),
  rate_limit: z.int().nullable(),
  rate_limit_window: z.int().nullable(),
  ...byWire(keyAmounts, ({ unit }) => (unit === "USD" ? z.number() : z.int()).nullable()),
  quotas: shownQuotas,
  models: z.array(z.string()).nullable().describe("Ids and patterns of the models that it may use; null: all."),
  tools: shownTools,
  never_leaves: neverLeaves,
  priority,
  response_cache: responseCache.nullable(),
  tags: z.array(z.string()),
  note: z.string().nullable(),
} as const;
const secret = z.string().describe("The key itself. It is shown this once and not kept.");

export const keyShape = z.object(keyMembers).meta({ id: "ApiKey" });
export const keyDetailsShape = z
  .object({ ...keyMembers, quotas_used: usedQuotas.describe("What was used of each of `quotas`.") })
  .meta({ id: "ApiKeyDetails" });
export const createdKeyShape = z.object({ ...keyMembers, key: secret }).meta({ id: "CreatedApiKey" });
export const rotatedKeyShape = z
  .object({ ...keyMembers, key: secret, replaces: z.string().describe("Id of the old key.") })
  .meta({ id: "RotatedApiKey" });
export type KeyWire = z.infer<typeof keyShape>;
