// Schemas of declared state. Documents describe objects of the installation, and a plan describes how they are applied.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { declaredKinds } from "../../domain/declared.ts";
import { createAccountRequest, tierRequest, updateAccountRequest } from "../accounts.ts";
import { createKeyRequest } from "../keys.ts";
import { updateModelRequest } from "../models.ts";
import { updateMcpServerRequest } from "../tools/mcp-servers.ts";
import { createUpstreamRequest } from "../upstreams.ts";
import { createWebhookRequest, updateWebhookRequest } from "../webhooks.ts";

const kind = z.enum(declaredKinds);
const name = z
  .string()
  .min(1)
  .max(256)
  .describe(
    "Name of the object in files: its own name if the kind has names, and its id if the object has no such name yet.",
  );
const spec = z.record(z.string(), z.unknown());
const specText =
  "Settings of the object, as the requests that create and change it have them. Omitted members have their default values.";
const managedBy = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._/-]{0,62}$/)
  .describe("Name of the set of files that manages the objects.");

/** The settings that each kind of object has. The names of other objects in them are external names. */
export const specShapes = {
  tier: tierRequest,
  account: z.object({ ...updateAccountRequest.shape, name: createAccountRequest.shape.name }),
  upstream: createUpstreamRequest.omit({ name: true }),
  model: updateModelRequest,
  mcp_server: updateMcpServerRequest,
  webhook: z.object({
    ...{ account: name.optional(), environment: z.enum(environments).optional() },
    ...{ ...createWebhookRequest.shape, enabled: updateWebhookRequest.shape.enabled },
  }),
  key: z.object({
    ...createKeyRequest.omit({ expires_in: true }).shape,
    account: name,
    environment: z.enum(environments),
  }),
} as const satisfies Record<(typeof declaredKinds)[number], z.ZodObject>;
export type SpecOf<Kind extends keyof typeof specShapes> = z.infer<(typeof specShapes)[Kind]>;

/** Schemas of these settings as the member `spec` of a document. Unknown members are not allowed. */
export const specSchemas = Object.fromEntries(
  declaredKinds.map((one) => [one, z.object({ spec: z.strictObject(specShapes[one].shape) })]),
) as unknown as Record<(typeof declaredKinds)[number], z.ZodObject<{ spec: z.ZodObject }>>;

const givenDocument = z.strictObject({ kind, name, spec: spec.describe(specText) });
export type GivenDocument = z.infer<typeof givenDocument>;

export const maxDocuments = 2_000;

export const applyRequest = z
  .object({
    managed_by: managedBy,
    documents: z.array(givenDocument).max(maxDocuments),
    prune: z
      .boolean()
      .optional()
      .describe("True to delete objects that `managed_by` manages and that have no document. Default: false."),
    lost: z
      .array(z.strictObject({ kind, name }))
      .max(maxDocuments)
      .optional()
      .describe(
        "Objects whose secret the caller does not have. Webhooks are replaced, and keys that were never used. A key that was used is refused.",
      ),
    plan: z.boolean().optional().describe("True to only return the changes. Default: false."),
    expect: z
      .string()
      .max(64)
      .optional()
      .describe("`digest` of the plan that was shown. If the plan is another one now, nothing is changed."),
  })
  .meta({ id: "ApplyRequest" });
export type ApplyRequest = z.infer<typeof applyRequest>;

const change = z
  .object({
    field: z.string().describe("Path of the member in `spec`, such as `price.input`."),
    before: z
      .unknown()
      .optional()
      .describe("Value now. Missing if the member has its default value, except where an account is suspended."),
    after: z.unknown().optional().describe("Value in the document. Missing if the member gets its default value."),
    secret: z.boolean().describe("True if the values are secrets, which are not shown."),
  })
  .meta({ id: "DeclaredChange" });

const action = z
  .enum(["create", "replace", "adopt", "update", "suspend", "delete", "none"])
  .describe(
    "`adopt`: the object exists without a manager; its settings become those of the document. `suspend`: an account without a document is suspended and gets the tier `free`, as accounts are not deleted. `replace`: the object is deleted and created again, because its secret was lost.",
  );

const plannedShape = z.object({ kind, name, action, changes: z.array(change) }).meta({ id: "PlannedDocument" });
export type Planned = z.infer<typeof plannedShape>;
export type DeclaredChange = Planned["changes"][number];

const appliedDocument = plannedShape
  .extend({
    secret: z
      .string()
      .optional()
      .describe("Secret of a new key or webhook. It is shown only in this response, and not in a plan."),
  })
  .meta({ id: "AppliedDocument" });

export type AppliedDocument = z.infer<typeof appliedDocument>;

export const appliedShape = z
  .object({
    object: z.literal("apply"),
    managed_by: z.string(),
    digest: z.string().describe("Digest of the changes."),
    data: z.array(appliedDocument).describe("The entries of the documents, then those of the deletions."),
  })
  .meta({ id: "Apply" });

export const putDocumentRequest = z
  .object({ managed_by: managedBy.optional(), spec: spec.describe(specText) })
  .meta({ id: "PutDocumentRequest" });

export const documentShape = z
  .object({
    object: z.literal("document"),
    kind,
    name,
    managed_by: z.string().nullable().describe("Name of the set of files that manages the object. null: none."),
    spec: spec.describe("Settings that differ from the defaults, without secrets."),
    secrets: z.array(z.string()).describe("Members of `spec` that are set but secret, such as `api_key`."),
  })
  .meta({ id: "DeclaredDocument" });
export type DocumentWire = z.infer<typeof documentShape>;

/** The answer to a put of a document. Only this answer contains the secret of a new object. */
export const putDocumentShape = documentShape
  .extend({ secret: appliedDocument.shape.secret })
  .meta({ id: "PutDocument" });

export const documentQuery = z.object({
  kind: kind.optional().meta({ description: `one of ${declaredKinds.join(", ")}; only documents of this kind` }),
  managed_by: z
    .string()
    .max(63)
    .optional()
    .meta({ description: "at most 63 characters: the name of a set of files, whose documents are meant" }),
});
export const managerQuery = z.object({ managed_by: documentQuery.shape.managed_by });
