// Access tokens that are issued: of what was granted, what the app may have by now.
import { expect, test } from "bun:test";
import { keyRecordFor } from "../../../tests/support/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import { signedAnswer } from "./issue.ts";

function issueTo(allowed: readonly Scope[], granted: Scope[], wanted?: string) {
  const deps = {
    issuer: () => "https://headrace.example",
    tokens: {
      issueForGrant: async ({ scopes }: { scopes: readonly string[] }) => ({
        ...{ id: "tok_1", accessToken: "signed", expiresIn: 3_600, scope: scopes.join(" ") },
      }),
    },
  };
  const client = { id: "app_1", scopes: [...allowed] };
  const grant = keyRecordFor({ kind: "grant", appId: "app_1", personId: "usr_1", scopes: granted });
  const refreshToken = { token: "hrr_1", record: { resources: [] } };
  return signedAnswer(grant, wanted, refreshToken, { client, resources: [] }, deps);
}

test("issues no scope that the app lost after the grant", async () => {
  const answer = await issueTo(["models:read"], ["chat:write", "models:read"]);
  expect(answer).toMatchObject({ scope: "models:read", refresh_token: "hrr_1", expires_in: 3_600 });
});

test("issues nothing if the app lost all scopes of the grant or the requested one", async () => {
  await expect(issueTo(["usage:read"], ["chat:write"])).rejects.toMatchObject({ reason: "no_scope" });
  await expect(issueTo(["models:read"], ["chat:write", "models:read"], "chat:write")).rejects.toMatchObject({
    code: "invalid_scope",
  });
});
