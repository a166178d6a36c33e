// Schemas of API keys: their records, and the requests that create, change and rotate keys.
import { z } from "zod";
import { environments } from "../domain/api-key.ts";
import { givenTagPattern, maxKeyTags, maxTagLength } from "../domain/key-tags.ts";
import { byWire, keyAmounts } from "../domain/limits/amounts.ts";
import { defaultWindowSeconds } from "../domain/limits/rate-limit.ts";
import { maxKeyModels, maxModelPatternLength, modelPatternPattern } from "../domain/models/model-patterns.ts";
import { responseCaches } from "../domain/models/policies/cache.ts";
import { priorities } from "../domain/models/policies/priority.ts";
import type { KeyStatus } from "../domain/principal.ts";
import { defaultScopes, scopes } from "../domain/scope.ts";
import { givenAmount } from "./amounts.ts";
import { unixSeconds } from "./parts.ts";
import { givenQuotas, shownQuotas, usedQuotas } from "./quotas.ts";
import { givenTools, shownTools } from "./tools/tool-lists.ts";

/** The end of the year 9999, in Unix seconds. A later time is a mistake, such as a time in milliseconds. */
const latestTime = 253_402_300_799;
const maxLifeSeconds = 3_153_600_000;

export const defaultOverlapSeconds = 86_400;
export const maxOverlapSeconds = 2_592_000;
const maxNoteLength = 1000;

const keyName = z.string().min(1).max(100).describe("Purpose of the key, in printable characters.");
const scopeList = z
  .array(z.enum(scopes))
  .min(1)
  .max(20)
  .describe(`Scopes of the key. Default: those of \`${defaultScopes.join(" ")}\` that its creator has.`);
const expiresAt = z.int().min(1).max(latestTime).describe("Expiry as Unix time in seconds.");
const addressList = z
  .array(z.string().min(1).max(64))
  .max(100)
  .describe("IPv4 and IPv6 addresses and CIDR ranges that may use the key. Empty: any address.");
const rateLimit = z.int().min(1).max(1_000_000).describe("Maximum number of requests per `rate_limit_window`.");
const rateLimitWindow = z
  .int()
  .min(1)
  .max(86_400)
  .describe(`Window of \`rate_limit\` in seconds. Default: ${defaultWindowSeconds}. Only with \`rate_limit\`.`);
const modelList = z
  .array(z.string().min(1).max(maxModelPatternLength).regex(modelPatternPattern))
  .min(1)
  .max(maxKeyModels)
  .describe(
    "Model ids that the key may use, or prefixes ending in `*`. An alias counts as its model. null: all models of the key's environment.",
  );
const neverLeaves = z
  .boolean()
  .describe(
    "True if requests of the key go only to the built-in engine and to upstreams and nodes that an operator marked as local.",
  );
const priority = z
  .enum(priorities)
  .nullable()
  .describe(
    "Highest priority of requests of the key, and their default. It cannot exceed the priority of the account's tier. null: the tier's priority.",
  );
const responseCache = z
  .enum(responseCaches)
  .describe(
    "`on`: requests use the response cache, even for models without a cache policy. `off`: the response cache is neither read nor filled. null: each model's policy applies.",
  );
const tagList = z
  .array(z.string().min(1).max(maxTagLength).regex(givenTagPattern))
  .max(maxKeyTags)
  .describe(
    "Tags under which the key's usage is counted. Allowed: letters, digits and `. _ : @ / = + -`, with a letter or digit first. `asked:` and `gateway:` are reserved.",
  );
const note = z.string().max(maxNoteLength).describe("Notes for people, in printable characters.");
const ownAmounts = byWire(keyAmounts, (amount) => givenAmount(amount).nullish());

export const keyStatuses = ["active", "expired", "revoked", "suspended"] as const satisfies readonly KeyStatus[];

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
      .describe("Seconds until the key expires. Alternative to `expires_at`."),
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
  .meta({ id: "UpdateKeyRequest", description: "Omitted members keep their values. null clears a value." });
export type UpdateKeyRequest = z.infer<typeof updateKeyRequest>;

export const rotateKeyRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .nullish()
      .describe(
        `Seconds for which the old key still works. 0: it stops immediately. Default: ${defaultOverlapSeconds}.`,
      ),
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
  status: z
    .enum(keyStatuses)
    .describe(
      "`active`: the key works. `suspended`: it is refused until it, or what it depends on, is resumed. A key ends at the latest when the key that created it ends.",
    ),
  created_by: z
    .string()
    .nullable()
    .describe("Id of the key or person that created it. null for keys that neither created, such as the first key."),
  created_at: unixSeconds,
  expires_at: unixSeconds.nullable(),
  last_used_at: unixSeconds.nullable(),
  revoked_at: unixSeconds
    .nullable()
    .describe("Time of revocation. After a rotation it may lie in the future: the key works until then."),
  allowed_ips: z.array(z.string()),
  rate_limit: z.int().nullable(),
  rate_limit_window: z.int().nullable(),
  ...byWire(keyAmounts, ({ unit }) => (unit === "USD" ? z.number() : z.int()).nullable()),
  quotas: shownQuotas,
  models: z.array(z.string()).nullable().describe("Model ids and patterns that the key may use. null: all models."),
  tools: shownTools,
  never_leaves: neverLeaves,
  priority,
  response_cache: responseCache.nullable(),
  tags: z.array(z.string()),
  note: z.string().nullable(),
} as const;
const secret = z.string().describe("The API key. It is shown only in this response and is not stored.");

export const revokeKeysRequest = z
  .object({ made_by: z.string().min(1).max(100).describe("Id of the person or key that made the keys.") })
  .meta({ id: "RevokeKeysRequest" });
export const revokedKeysShape = z
  .object({
    object: z.literal("api_key.revoked"),
    made_by: z.string(),
    revoked: z.array(z.string()).describe("Ids of the keys that this request ended."),
    kept: z
      .array(z.string())
      .describe("Ids of keys that the caller may not revoke, such as an operator's, and the key in the request."),
  })
  .meta({ id: "RevokedKeys" });

export const keyShape = z.object(keyMembers).meta({ id: "ApiKey" });
export const keyDetailsShape = z
  .object({ ...keyMembers, quotas_used: usedQuotas.describe("Usage of each of `quotas`.") })
  .meta({ id: "ApiKeyDetails" });
export const createdKeyShape = z.object({ ...keyMembers, key: secret }).meta({ id: "CreatedApiKey" });
export const rotatedKeyShape = z
  .object({ ...keyMembers, key: secret, replaces: z.string().describe("Id of the rotated key.") })
  .meta({ id: "RotatedApiKey" });
export type KeyWire = z.infer<typeof keyShape>;
