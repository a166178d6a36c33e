// The shapes of apps and of what people allowed them on the wire, and of the requests that register and change apps.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { appScopes, appTypes, defaultAppScopes, defaultSecretOverlapSeconds } from "../../domain/people/app.ts";
import { scopes } from "../../domain/scope.ts";
import { deletedShape, unixSeconds } from "../parts.ts";
import { givenQuotas, shownQuotas, usedQuotas } from "../quotas.ts";
import { givenTools, shownTools } from "../tools/tool-lists.ts";

const maxSecretOverlapSeconds = 2_592_000;
const maxUriLength = 2048;
const maxRedirectUris = 20;

const appName = z
  .string()
  .min(1)
  .max(100)
  .describe(
    "Shown to people who are asked to allow it; printable characters, and nothing that looks like the name of this server.",
  );
const homepageUrl = z
  .string()
  .min(1)
  .max(maxUriLength)
  .describe("An https address where people learn about the app, shown beside its name.");
const redirectUris = z
  .array(z.string().min(1).max(maxUriLength))
  .max(maxRedirectUris)
  .describe(
    "Where people are sent back to, compared byte by byte: https, http on 127.0.0.1, [::1] or localhost (any port), or an app's own scheme with a dot in it. May be empty for an app that only uses the device flow.",
  );
const scopeList = z.array(z.enum(appScopes)).min(1).max(20);
const requirePkce = z.boolean().describe("Whether it has to use PKCE (S256). A public app always has to.");

export const createAppRequest = z
  .object({
    name: appName,
    homepage_url: homepageUrl.nullish(),
    type: z
      .enum(appTypes)
      .nullish()
      .describe(
        "`confidential`: runs on a server and keeps a secret. `public`: on people's devices, without one. Default `confidential`.",
      ),
    redirect_uris: redirectUris.nullish(),
    scopes: scopeList.nullish().describe(`The most it may ask for. Default: \`${defaultAppScopes.join(" ")}\`.`),
    tools: givenTools.nullish(),
    require_pkce: requirePkce.nullish(),
  })
  .meta({ id: "CreateAppRequest" });
export type CreateAppRequest = z.infer<typeof createAppRequest>;

export const updateAppRequest = z
  .object({
    name: appName.optional(),
    homepage_url: homepageUrl.nullish(),
    redirect_uris: redirectUris.optional(),
    scopes: scopeList.optional().describe("The most it may ask for."),
    tools: givenTools.nullish(),
    require_pkce: requirePkce.optional(),
  })
  .meta({ id: "UpdateAppRequest", description: "What is left out stays as it is; null clears." });
export type UpdateAppRequest = z.infer<typeof updateAppRequest>;

export const rotateSecretRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxSecretOverlapSeconds)
      .nullish()
      .describe(`How long the old secret goes on working; 0: not at all. Default ${defaultSecretOverlapSeconds}.`),
  })
  .meta({ id: "RotateAppSecretRequest" });

const appMembers = {
  object: z.literal("app"),
  id: z.string(),
  client_id: z.string().describe("The same as `id`, under the name that OAuth has for it."),
  name: z.string(),
  homepage_url: z.string().nullable(),
  type: z.enum(appTypes),
  redirect_uris: z.array(z.string()),
  scopes: z.array(z.enum(scopes)).describe("The most it may ask for."),
  tools: shownTools,
  environment: z.enum(environments).describe("In which its access tokens work."),
  require_pkce: z.boolean(),
  publisher: z.string().describe("The account's name, shown to people who are asked to allow the app."),
  created_by: z.string().nullable().describe("Id of the person or key that registered it."),
  created_at: unixSeconds,
  secrets: z
    .array(
      z
        .object({
          id: z.string(),
          last4: z.string().describe("The last four characters of the secret."),
          created_at: unixSeconds,
          expires_at: unixSeconds.nullable().describe("After a rotation: it works until then."),
        })
        .meta({ id: "AppSecret" }),
    )
    .describe("Those that work, oldest first, two at most; none of a public app."),
} as const;
const clientSecret = z.string().describe("The secret itself. It is shown this once and not kept.");

export const appShape = z.object(appMembers).meta({ id: "App" });
export const createdAppShape = z
  .object({ ...appMembers, client_secret: clientSecret.optional() })
  .meta({ id: "CreatedApp", description: "With `client_secret` where the app is confidential." });
export const rotatedAppShape = z.object({ ...appMembers, client_secret: clientSecret }).meta({ id: "RotatedApp" });
export const deletedAppShape = deletedShape("app", "DeletedApp");
export type AppWire = z.infer<typeof appShape>;

const authorizationMembers = {
  object: z.literal("authorization"),
  id: z.string().describe("The app's id and the account's, with a colon between."),
  app: z.object({
    id: z.string(),
    name: z.string(),
    publisher: z.string(),
    homepage_url: z.string().nullable(),
  }),
  account: z.object({ id: z.string(), name: z.string() }).describe("The account that the app acts for."),
  environment: z.enum(environments),
  scopes: z.array(z.enum(scopes)).describe("What it may do, all that was allowed together."),
  tools: shownTools,
  quotas: shownQuotas.describe("Quotas per window of what the app uses for you, in each environment."),
  allowed_at: unixSeconds.describe("The first time that still counts."),
  last_used_at: unixSeconds.nullable(),
} as const;

export const authorizationShape = z.object(authorizationMembers).meta({ id: "Authorization" });
export const authorizationDetailsShape = z
  .object({
    ...authorizationMembers,
    quotas_used: usedQuotas.describe("What was used of each of `quotas` in this environment."),
  })
  .meta({ id: "AuthorizationDetails" });
export type AuthorizationWire = z.infer<typeof authorizationShape>;

export const updateAuthorizationRequest = z
  .object({ quotas: givenQuotas.nullish(), tools: givenTools.nullish() })
  .meta({ id: "UpdateAuthorizationRequest", description: "What is left out stays as it is; null clears." });

export const deletedAuthorizationShape = deletedShape("authorization", "DeletedAuthorization");
