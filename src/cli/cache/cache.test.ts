// `headrace cache clear`: what it asks for, and what it says.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ApiServer, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { runCommand } from "../../../tests/fixtures/command-line.ts";

let api: ApiServer;
const cleared = { object: "cache", account: null, model: null, deleted: true };

beforeEach(() => {
  api = startApiServer();
  api.answer = (method, path) =>
    method === "DELETE" && path.startsWith("/admin/cache") ? Response.json(cleared) : undefined;
});
afterEach(() => api.stop());

function clear(...args: string[]) {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key };
  return runCommand(["cache", "clear", ...args, "--data-dir", "/nowhere"], { env });
}

const asked = () => api.seen.map(({ method, path }) => `${method} ${path}`);

test("all of them are forgotten where nothing is named, and those of an account and a model where they are", async () => {
  const { stdout, code } = await clear();
  expect([code, stdout]).toEqual([0, "The answers are cleared. The next equal request runs on the model again.\n"]);
  await clear("--account", "acct_1", "--model", "a/b&c");
  expect(asked()).toEqual(["DELETE /admin/cache", "DELETE /admin/cache?account=acct_1&model=a%2Fb%26c"]);
});

test("with --json it is what the API says", async () => {
  expect(JSON.parse((await clear("--json")).stdout)).toEqual(cleared);
});

test("what the server says against it is told, and is no success", async () => {
  const message = "The answers are kept in Redis, and that cannot be reached at the moment.";
  api.answer = () => Response.json({ error: { code: "service_unavailable", message } }, { status: 503 });
  const { code, stderr } = await clear();
  expect(code).not.toBe(0);
  expect(stderr).toContain(message);
});
