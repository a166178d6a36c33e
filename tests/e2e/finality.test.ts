// What a revocation promises holds whatever the wall clock does, and names never carry a key.
import { expect, test } from "bun:test";
import { startHeadrace } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

test("keeps a deleted key revoked after its rotation overlap if the clock is set back", async () => {
  const clock = manualClock();
  await using server = await startHeadrace({ clock });
  const made = (await (await server.request("/v1/keys", { body: { name: "Old" } })).json()) as {
    id: string;
    key: string;
  };
  const models = () => server.request("/v1/models", { headers: { authorization: `Bearer ${made.key}` } });
  await server.request(`/v1/keys/${made.id}/rotate`, { body: { overlap_seconds: 60 } });
  clock.jump(120);
  const answer = await server.request(`/v1/keys/${made.id}`, { method: "DELETE" });
  expect(await answer.json()).toMatchObject({ status: "revoked" });
  clock.jump(-3_600);
  expect((await models()).status).toBe(401);
  expect(await (await server.request(`/v1/keys/${made.id}`)).json()).toMatchObject({ status: "revoked" });
});

test("refuses a whole key as a name, for keys and for accounts", async () => {
  await using server = await startHeadrace();
  const refused = await server.request("/v1/keys", { body: { name: `my ${server.key}` } });
  expect(refused.status).toBe(400);
  expect(await refused.text()).not.toContain(server.key);
  const operator = await makeOperatorKey(server.dataDir);
  const headers = { authorization: `Bearer ${operator}` };
  expect((await server.request("/v1/admin/accounts", { body: { name: operator }, headers })).status).toBe(400);
});

test("does not let an operator key create a wider key by token, environment or expiry", async () => {
  await using server = await startHeadrace();
  const operator = await makeOperatorKey(server.dataDir);
  const headers = { authorization: `Bearer ${operator}` };
  const accounts = (await (await server.request("/v1/admin/accounts", { headers })).json()) as {
    data: { id: string }[];
  };
  const path = `/v1/admin/accounts/${accounts.data[0]?.id}/keys`;
  const make = async (body: Record<string, unknown>, by = operator) => {
    const response = await server.request(path, {
      body: { name: "Another", environment: "dev", scopes: ["admin:manage"], ...body },
      headers: { authorization: `Bearer ${by}` },
    });
    return { status: response.status, body: (await response.json()) as { key: string } };
  };
  expect(await make({ environment: "live" })).toMatchObject({
    status: 403,
    body: { error: { code: "permission_denied" } },
  });
  const issued = await server.request("/v1/auth/token", { body: { api_key: operator, scope: "admin:manage" } });
  const { access_token: token } = (await issued.json()) as { access_token: string };
  expect(await make({}, token)).toMatchObject({ status: 403, body: { error: { code: "permission_denied" } } });
  const short = await make({ expires_in: 600 });
  expect(short.status).toBe(200);
  expect((await make({}, short.body.key)).status).toBe(403);
  expect((await make({ expires_in: 300 }, short.body.key)).status).toBe(200);
});
