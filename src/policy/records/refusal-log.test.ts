// Tests refused credentials in the audit log: rows have all known facts and no secret, are limited in number, and never
// delay requests.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Credentials, openCredentials, presented, testEvent } from "../../../tests/support/credentials.ts";
import { generateApiKey } from "../../domain/api-key.ts";
import type { AuditEvent } from "../../domain/audit.ts";

let all: Credentials;

beforeEach(async () => {
  all = await openCredentials();
});

afterEach(() => all.close());

const attempt = async (parts: Parameters<typeof presented>[0]) => {
  const attempted = async () => all.authenticator.authenticate(presented(parts));
  await expect(attempted()).rejects.toThrow("Invalid API key provided");
};

async function refusals(): Promise<AuditEvent[]> {
  return await all.audit.list({ action: "credential.refused" }, { after: undefined, limit: 1_000 });
}

test("audits a refusal with its reason, address and request, and its key if known", async () => {
  const { secret, id } = await all.addKey("live", { revokedAt: 1 });
  const unknown = generateApiKey("live");
  await attempt({ apiKey: secret, clientAddress: "192.0.2.1", requestId: "req_7" });
  await attempt({ apiKey: unknown });
  expect(await refusals()).toEqual([]);
  await all.refusals.flush();
  const [second, first, ...others] = await refusals();
  expect(others).toEqual([]);
  expect(first).toMatchObject({
    ...{ actor: { type: "key", id }, targetId: id, accountId: all.accountId },
    ...{ clientAddress: "192.0.2.1", requestId: "req_7", detail: { reason: "revoked" }, at: all.now.seconds },
  });
  expect(second).toMatchObject({
    ...{ actor: { type: "system" }, targetId: null, accountId: null, detail: { reason: "unknown" } },
  });
  const written = JSON.stringify(await refusals());
  for (const key of [secret, unknown]) expect(written).not.toContain(key.slice(12, 20));
});

test("audits a request without any credential as a refusal", async () => {
  await attempt({});
  await all.refusals.close();
  expect((await refusals()).map(({ detail }) => detail)).toEqual([{ reason: "missing" }]);
});

test("still audits a revoked key during a flood of made-up credentials", async () => {
  const { secret, id } = await all.addKey();
  await all.keys.updateKey(id, { revokedAt: all.now.seconds }, testEvent(all.now.seconds));
  for (let i = 0; i < 150; i++) await attempt({ apiKey: "junk" });
  await attempt({ apiKey: secret });
  await all.refusals.close();
  expect((await refusals()).filter(({ targetId }) => targetId === id)).toHaveLength(1);
});

test("audits a hundred refusals a minute, and one row that counts the others by reason", async () => {
  for (let i = 0; i < 1_000; i++)
    await attempt({ apiKey: i % 4 === 0 ? "nonsense" : "sk_live_nonsense", authorization: i % 5 === 0 ? "" : null });
  await all.refusals.flush();
  expect(await refusals()).toHaveLength(100);
  all.now.ms += 59_999;
  await all.refusals.flush();
  expect(await refusals()).toHaveLength(100);
  all.now.ms += 1;
  await attempt({ apiKey: "nonsense" });
  await all.refusals.flush();
  const [latest, summary, ...rows] = await refusals();
  expect(rows).toHaveLength(100);
  expect(latest?.detail).toEqual({ reason: "malformed" });
  expect(summary?.detail).toEqual({
    ...{ reason: "suppressed", suppressed: 900 },
    reasons: { malformed: 720, authorization_not_bearer: 180 },
  });
});

test("writes the counted refusals at shutdown", async () => {
  for (let i = 0; i < 150; i++) await attempt({ apiKey: "nonsense" });
  await all.refusals.close();
  expect((await refusals())[0]?.detail).toEqual({ reason: "suppressed", suppressed: 50, reasons: { malformed: 50 } });
});

test("fails no request if the audit log cannot be written, and writes the rows later", async () => {
  all.auditSwitch.failure = new Error("disk full");
  for (let i = 0; i < 10; i++) {
    await attempt({ apiKey: "nonsense" });
    await all.refusals.flush();
  }
  expect(all.log.lines.map(({ event }) => event)).toEqual(["refusals_not_audited"]);
  all.auditSwitch.failure = undefined;
  await all.refusals.flush();
  expect(await refusals()).toHaveLength(10);
});
