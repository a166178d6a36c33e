// The world that tests of the dashboard begin with: it has all that the dashboard shows, and lets a browser in.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { colleagues, type DashboardWorld, type Filled, openDashboardWorld } from "./dashboard-world.ts";

let world: DashboardWorld;
let filled: Filled;

beforeAll(async () => {
  world = await openDashboardWorld();
  filled = await world.fill({ keys: 130, requests: 1_500, chats: 30, events: 40 });
});

afterAll(() => world[Symbol.asyncDispose]());

/** All rows of the list at `path`, as far as they are within one page. */
async function listed(path: string): Promise<Record<string, unknown>[]> {
  return (await world.browser.ask(path))["data"] as Record<string, unknown>[];
}

test("returns the stored test records from the API", async () => {
  expect(new Set((await listed("/v1/models")).map(({ id }) => id))).toEqual(
    new Set(["aurora-large", "aurora-mini", "ember-code", "atlas-embed", "gale-preview"]),
  );
  expect((await listed("/v1/members")).map(({ role }) => role)).toEqual(["owner", "admin", "member"]);
  expect((await listed("/v1/apps")).map(({ id }) => id).toSorted()).toEqual([...filled.apps].toSorted());
  expect(await listed("/v1/authorizations")).toHaveLength(2);
  expect(await listed("/v1/keys?limit=100")).toHaveLength(100);
  expect(await listed("/v1/chat/completions?limit=100")).toHaveLength(30);
  expect(await listed("/v1/admin/accounts")).toHaveLength(4);
});

test("sums a month of test usage to the stored requests", async () => {
  const start = Math.floor(Date.now() / 1000) - 31 * 86_400;
  const rows = await listed(`/v1/usage?start=${start}&bucket=day&group_by=model&limit=1000`);
  const requests = rows.reduce((sum, row) => sum + Number(row["requests"]), 0);
  expect(requests).toBe(1_500);
  expect(new Set(rows.map(({ start: of }) => of)).size).toBeGreaterThan(20);
});

test("signs a person in in the test browser", async () => {
  const cookies: { name: string; value: string; url?: string }[] = [];
  await world.signIn({ addCookies: async (more) => void cookies.push(...more) }, colleagues.member.email);
  const cookie = cookies.find(({ url }) => url === world.server.url);
  const response = await fetch(`${world.server.url}/v1/session`, {
    headers: { cookie: `${cookie?.name}=${cookie?.value}`, "sec-fetch-site": "same-origin" },
  });
  expect(await response.json()).toMatchObject({ person: { email: colleagues.member.email } });
});
