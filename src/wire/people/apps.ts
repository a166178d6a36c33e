// Schemas of apps and of people's grants to them, and of the requests that register and change apps.
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
  .describe("Name on the consent page, in printable characters. It must not look like the name of this server.");
const homepageUrl = z.string().min(1).max(maxUriLength).describe("An https URL about the app, shown beside its name.");
const redirectUris = z
  .array(z.string().min(1).max(maxUriLength))
  .max(maxRedirectUris)
  .describe(
    "Redirect URIs, compared byte by byte: https, http on 127.0.0.1, [::1] or localhost (any port), or a private scheme with a dot. May be empty for an app that only uses the device flow.",
  );
const scopeList = z.array(z.enum(appScopes)).min(1).max(20);
const requirePkce = z.boolean().describe("True if the app must use PKCE (S256). A public app always must.");

export const createAppRequest = z
  .object({
    name: appName,
    homepage_url: homepageUrl.nullish(),
    type: z
      .enum(appTypes)
      .nullish()
      .describe(
        "`confidential`: the app runs on a server and has a secret. `public`: the app runs on users' devices, without a secret. Default `confidential`.",
      ),
    redirect_uris: redirectUris.nullish(),
    scopes: scopeList
      .nullish()
      .describe(`Scopes that the app may request. Default: \`${defaultAppScopes.join(" ")}\`.`),
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
    scopes: scopeList.optional().describe("Scopes that the app may request."),
    tools: givenTools.nullish(),
    require_pkce: requirePkce.optional(),
  })
  .meta({ id: "UpdateAppRequest", description: "Omitted members keep their values. null clears a value." });
export type UpdateAppRequest = z.infer<typeof updateAppRequest>;

export const rotateSecretRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxSecretOverlapSeconds)
      .nullish()
      .describe(
        `Seconds for which the old secret still works. 0: it stops immediately. Default: ${defaultSecretOverlapSeconds}.`,
      ),
  })
  .meta({ id: "RotateAppSecretRequest" });

const appMembers = {
  object: z.literal("app"),
  id: z.string(),
  client_id: z.string().describe("The `id` under its name in OAuth."),
  name: z.string(),
  homepage_url: z.string().nullable(),
  type: z.enum(appTypes),
  redirect_uris: z.array(z.string()),
  scopes: z.array(z.enum(scopes)).describe("Scopes that the app may request."),
  tools: shownTools,
  status: z.enum(["active", "suspended"]).describe("While an app is suspended, its tokens are refused."),
  environment: z.enum(environments).describe("Environment of the app's access tokens."),
  require_pkce: z.boolean(),
  publisher: z.string().describe("Name of the account, shown on the consent page."),
  created_by: z.string().nullable().describe("Id of the person or key that registered the app."),
  created_at: unixSeconds,
  secrets: z
    .array(
      z
        .object({
          id: z.string(),
          last4: z.string().describe("The last four characters of the secret."),
          created_at: unixSeconds,
          expires_at: unixSeconds.nullable().describe("Time after which the secret stops working, after a rotation."),
        })
        .meta({ id: "AppSecret" }),
    )
    .describe("Valid secrets, oldest first, at most two. Empty for a public app."),
} as const;
const clientSecret = z.string().describe("The client secret. It is shown only in this response and is not stored.");

export const appShape = z.object(appMembers).meta({ id: "App" });
export const createdAppShape = z
  .object({ ...appMembers, client_secret: clientSecret.optional() })
  .meta({ id: "CreatedApp", description: "The app, with `client_secret` if it is confidential." });
export const rotatedAppShape = z.object({ ...appMembers, client_secret: clientSecret }).meta({ id: "RotatedApp" });
export const deletedAppShape = deletedShape("app", "DeletedApp");
export type AppWire = z.infer<typeof appShape>;

const authorizationMembers = {
  object: z.literal("authorization"),
  id: z.string().describe("App id and account id, separated by a colon."),
  app: z.object({
    id: z.string(),
    name: z.string(),
    publisher: z.string(),
    homepage_url: z.string().nullable(),
  }),
  account: z.object({ id: z.string(), name: z.string() }).describe("Account for which the app acts."),
  environment: z.enum(environments),
  scopes: z.array(z.enum(scopes)).describe("All scopes that you granted to the app."),
  tools: shownTools,
  quotas: shownQuotas.describe("Quotas per window for the app's usage on your behalf, in each environment."),
  allowed_at: unixSeconds.describe("Time of the first grant that is still valid."),
  last_used_at: unixSeconds.nullable(),
} as const;

export const authorizationShape = z.object(authorizationMembers).meta({ id: "Authorization" });
export const authorizationDetailsShape = z
  .object({
    ...authorizationMembers,
    quotas_used: usedQuotas.describe("Usage of each of `quotas` in this environment."),
  })
  .meta({ id: "AuthorizationDetails" });
export type AuthorizationWire = z.infer<typeof authorizationShape>;

export const updateAuthorizationRequest = z
  .object({ quotas: givenQuotas.nullish(), tools: givenTools.nullish() })
  .meta({ id: "UpdateAuthorizationRequest", description: "Omitted members keep their values. null clears a value." });

export const deletedAuthorizationShape = deletedShape("authorization", "DeletedAuthorization");
