// The operators' endpoints for the keys that sign access tokens. Private keys are never shown.
import { z } from "zod";
import type { SigningKeyInfo, SigningKeys } from "../../../policy/credentials/signing-keys.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminSigningKeyDeps extends EndpointDeps {
  signingKeys: Pick<SigningKeys, "list" | "rotate" | "replace">;
  /** Called after a change of signing keys. It takes effect immediately in this process, and soon in others. */
  changed(ids?: readonly string[]): void;
}

const signingKeyShape = z
  .object({
    object: z.literal("signing_key"),
    id: z.string().describe("`kid` of the tokens that the key signs."),
    state: z
      .enum(["upcoming", "signing", "verifying"])
      .describe("Published but not in use yet; in use; or kept only to verify earlier tokens."),
    created_at: unixSeconds,
    active_at: unixSeconds.describe("Time at which the key begins to sign, as Unix time in seconds."),
    retires_at: unixSeconds.nullable().describe("Time until which the key is published. null for the newest key."),
  })
  .meta({ id: "SigningKey" });

const signingKeyList = wholeListOf(signingKeyShape, "SigningKeyList");

const endpoint = adminEndpoints<AdminSigningKeyDeps>();

export function adminSigningKeyRoutes(deps: AdminSigningKeyDeps): ScopedRoute[] {
  return [list(deps), rotate(deps)];
}

const list = endpoint("GET", "/v1/admin/signing-keys", {
  operationId: "listSigningKeys",
  summary: "List the keys that sign access tokens",
  description: "Oldest first, without retired keys. `/.well-known/jwks.json` has the public keys themselves.",
  response: { description: "The keys.", json: signingKeyList },
  answer: ({ deps: { signingKeys } }) => ({ object: "list", data: signingKeys.list().map(toWire) }),
});

const rotateRequest = z
  .strictObject({
    revoke: z.boolean().nullish().describe("True if all earlier tokens are refused from now on."),
  })
  .meta({ id: "RotateSigningKeyRequest" });

const rotate = endpoint("POST", "/v1/admin/signing-keys/rotate", {
  operationId: "rotateSigningKey",
  summary: "Replace the key that signs access tokens",
  description:
    "The new key is published immediately and signs ten minutes later. Tokens of the old key stay valid until they expire. If a new key is already upcoming, it is returned. Rotation also happens automatically every 90 days. Use `revoke` if the old key may have leaked: the new key then signs immediately, and all earlier tokens are refused. Clients get new tokens with their API keys and refresh tokens.",
  requestBody: rotateRequest,
  bodyIsOptional: true,
  response: { description: "The new key.", json: signingKeyShape },
  async answer({ deps, principal, body: { revoke }, origin }) {
    if (!revoke) return toWire(await deps.signingKeys.rotate(principal, origin));
    const key = await deps.signingKeys.replace(principal, origin);
    deps.changed();
    return toWire(key);
  },
});

function toWire({ id, state, createdAt, activeAt, retiresAt }: SigningKeyInfo): z.infer<typeof signingKeyShape> {
  return { object: "signing_key", id, state, created_at: createdAt, active_at: activeAt, retires_at: retiresAt };
}
