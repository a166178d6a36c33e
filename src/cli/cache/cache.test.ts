// Tests `headrace cache clear`: its requests and its output.
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

test("clears the whole response cache by default, or that of a named account and model", async () => {
  const { stdout, code } = await clear();
  expect([code, stdout]).toEqual([0, "The answers are cleared. The next equal request runs on the model again.\n"]);
  await clear("--account", "acct_1", "--model", "a/b&c");
  expect(asked()).toEqual(["DELETE /admin/cache", "DELETE /admin/cache?account=acct_1&model=a%2Fb%26c"]);
});

test("prints the API's answer of a cleared cache with --json", async () => {
  expect(JSON.parse((await clear("--json")).stdout)).toEqual(cleared);
});

test("prints the server's error for a clearing that fails, with a failing exit code", async () => {
  const message = "The answers are kept in Redis, and that cannot be reached at the moment.";
  api.answer = () => Response.json({ error: { code: "service_unavailable", message } }, { status: 503 });
  const { code, stderr } = await clear();
  expect(code).not.toBe(0);
  expect(stderr).toContain(message);
});
