// Requests of people whose right ends while the body is still on its way: what they ask for does not happen any more.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";
import { head, openRaw, type RawAnswer } from "./raw-client.ts";

let server: TestServer;
let people: ServerPeople;
/** Who acts, and a member to act on; another owner and operator keeps either from being the last. */
let actor: SignedInMember;
let target: SignedInMember;

beforeAll(async () => {
  server = await startHeadrace();
  people = openServerPeople(server);
  await people.addMember("owner", { isOperator: true });
});

afterAll(async () => {
  await people.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  actor = await people.addMember("owner", { isOperator: true });
  target = await people.addMember("member");
});

/** Sends the head; the server asks for the body once the request is let in, and then it is held back until `finish`. */
async function hold(method: string, path: string, headers: Record<string, string>, body: unknown) {
  const isForm = body instanceof URLSearchParams;
  const text = isForm ? body.toString() : JSON.stringify(body);
  const type = isForm ? "application/x-www-form-urlencoded" : "application/json";
  const connection = await openRaw(server.url);
  const asked = new Promise((resolve) => connection.socket.once("data", resolve));
  const sent = { ...headers, "content-type": type, "content-length": String(Buffer.byteLength(text)) };
  const lines = Object.entries({ host: new URL(server.url).host, ...sent, expect: "100-continue" });
  await connection.write(
    head(
      `${method} ${path} HTTP/1.1`,
      lines.map(([name, value]) => `${name}: ${value}`),
    ),
  );
  expect(String(await asked)).toStartWith("HTTP/1.1 100 ");
  return async (): Promise<RawAnswer | undefined> => {
    await connection.write(text);
    const { answers } = await connection.answered();
    connection.socket.destroy();
    return answers[0];
  };
}

const auditAbout = async (id: string) =>
  people.db`SELECT action FROM audit_log WHERE actor_id = ${id} AND action NOT LIKE 'session.%'`;
const roleOf = async ({ membership }: SignedInMember) => (await people.people.findMembership(membership.id))?.role;
const isOperator = async ({ person }: SignedInMember) => (await people.people.findPerson(person.id))?.isOperator;

/** Everything that lasts and takes a body. */
const changes = (): [string, string, unknown][] => [
  ["PATCH", `/v1/members/${target.membership.id}`, { role: "owner" }],
  ["POST", "/v1/invitations", { email: "accomplice@example.com", role: "owner" }],
  ["PATCH", "/v1/session", { name: "Somebody else" }],
  ["POST", "/v1/session/password", { new_password: "a password of theirs" }],
  ["POST", "/v1/keys", { name: "lasting" }],
  ["POST", "/v1/apps", { name: "lasting", type: "public", redirect_uris: ["https://app.example/cb"] }],
  ["PATCH", `/v1/admin/people/${target.person.id}`, { is_operator: true }],
  ["POST", `/v1/admin/accounts/${people.accountId}/invitations`, { email: "x@example.com", role: "owner" }],
  ["POST", `/v1/admin/accounts/${people.accountId}/keys`, { name: "x", environment: "dev", scopes: ["admin:manage"] }],
];

async function allHeld(some: [string, string, unknown][], headers: Record<string, string>) {
  return Promise.all(some.map(([method, path, body]) => hold(method, path, headers, body)));
}

async function refused(held: (() => Promise<RawAnswer | undefined>)[], status = 401): Promise<void> {
  const answers = await Promise.all(held.map((finish) => finish()));
  expect(answers.map((answer) => answer?.status)).toEqual(held.map(() => status));
  expect(await auditAbout(actor.person.id)).toEqual([]);
  expect([await roleOf(target), await isOperator(target)]).toEqual(["member", false]);
}

test("completes each delayed request if nothing changes meanwhile", async () => {
  for (const [method, path, body] of changes()) {
    const finish = await hold(method, path, actor.headers, body);
    const answer = await finish();
    expect([path, answer?.status, answer?.status === 200 ? "" : answer?.body]).toEqual([path, 200, ""]);
  }
});

describe("a delayed request whose rights end has no effect", () => {
  // hardening: K8
  test("drops a request whose session ended elsewhere", async () => {
    const held = await allHeld(changes(), actor.headers);
    await people.db`DELETE FROM sessions WHERE id = ${actor.sessionId}`;
    await refused(held);
  });

  test("drops a form whose session ended elsewhere", async () => {
    const csrf = actor.headers["x-csrf-token"] ?? "";
    const { cookie = "", origin = "" } = actor.headers;
    const forms = [
      ["/settings/name", { csrf, name: "Somebody else" }],
      ["/settings/password", { csrf, password: "a password of theirs" }],
    ] as const;
    const held = await Promise.all(
      forms.map(([path, fields]) => hold("POST", path, { cookie, origin }, new URLSearchParams(fields))),
    );
    await people.db`DELETE FROM sessions WHERE id = ${actor.sessionId}`;
    await refused(held, 403);
    expect((await people.people.findPerson(actor.person.id))?.name).toBe("owner");
  });

  test("drops a request of an owner who has become a member", async () => {
    await people.db`UPDATE people SET is_operator = 0 WHERE id = ${actor.person.id}`;
    const held = await allHeld(changes().slice(0, 2), actor.headers);
    await people.setRole(actor.membership, "member");
    await refused(held);
  });

  // hardening: K8
  test("drops a request of an operator who has lost the role", async () => {
    const held = await allHeld(changes().slice(-3), actor.headers);
    const event = people.event("person.updated");
    const undone = { setOperator: { personId: actor.person.id, isOperator: false } };
    await people.write(() => people.people.apply(undone, event));
    await refused(held);
  });

  test("drops a request of a login that was revoked meanwhile", async () => {
    const { grantId, headers } = await people.allow(actor);
    const held = await allHeld(changes().slice(0, 2), headers);
    await people.db`UPDATE api_keys SET revoked = 1, revoked_at = 1 WHERE id = ${grantId}`;
    await refused(held);
  });
});
