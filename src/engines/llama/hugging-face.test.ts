// Tests answers of the hub, and the messages that a person gets for them.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { HubServer } from "../../../tests/fixtures/hub-server.ts";
import type { Hub } from "./hub-request.ts";
import { listHubFiles } from "./hugging-face.ts";
import { parseModelSource } from "./model-source.ts";
import { SetupError } from "./setup-error.ts";

const source = parseModelSource("hf:acme/model-GGUF");
const listing = "/api/models/acme/model-GGUF";
let server: HubServer;

beforeEach(async () => {
  server = await HubServer.start();
});

afterEach(() => server.stop());

function hub(parts: Partial<Hub> = {}): Hub {
  const timing = { firstByteTimeoutMs: 200, stallTimeoutMs: 200, retryDelaysMs: [] };
  return { endpoint: parts.endpoint ?? server.endpoint, token: parts.token, timing };
}

async function failure(parts: Partial<Hub> = {}): Promise<SetupError> {
  const error = await listHubFiles(hub(parts), source, new AbortController().signal).catch((reason: unknown) => reason);
  if (!(error instanceof SetupError)) throw new Error(`Expected a SetupError, got ${String(error)}`);
  return error;
}

test("lists files with sizes and checksums over several pages", async () => {
  const content = new Uint8Array([1, 2, 3]);
  server.put("acme/model-GGUF", [
    { path: "a.gguf", content },
    { path: "b/c.gguf", content },
    { path: "README.md", content, inGit: true },
  ]);
  server.pageSize = 1;
  const files = await listHubFiles(hub(), source, new AbortController().signal);
  expect(files.map((file) => [file.path, file.bytes, file.checksum.algorithm])).toEqual([
    ["a.gguf", 3, "sha256"],
    ["b/c.gguf", 3, "sha256"],
    ["README.md", 3, "git-blob"],
  ]);
  expect(server.requests).toHaveLength(3);
});

test("does not follow the hub's next page to another host", async () => {
  const other = await HubServer.start();
  server.hubAnswers.set(listing, {
    status: 200,
    headers: { link: `<${other.endpoint}${listing}/tree/main?recursive=true>; rel="next"` },
    body: "[]",
  });
  expect(await listHubFiles(hub({ token: "hf_secret" }), source, new AbortController().signal)).toEqual([]);
  expect(other.requests).toEqual([]);
  await other.stop();
});

test("suggests the spelling or a token for an unknown repository", async () => {
  const { message } = await failure();
  expect(message).toContain("no public repository acme/model-GGUF");
  expect(message).toContain("HF_TOKEN");
});

test("reports a refused token without showing it", async () => {
  const { message } = await failure({ token: "hf_secret" });
  expect(message).toContain("refused HF_TOKEN");
  expect(message).not.toContain("hf_secret");
});

test("tells where to request access to a gated repository", async () => {
  server.hubAnswers.set(listing, { status: 401, headers: { "x-error-code": "GatedRepo" } });
  expect((await failure()).message).toContain(
    `Ask for access at ${server.endpoint}/acme/model-GGUF, then create a token`,
  );
  server.hubAnswers.set(listing, { status: 403, headers: { "x-error-code": "GatedRepo" } });
  expect((await failure({ token: "hf_secret" })).message).toContain("the account of HF_TOKEN has no access");
});

test("reports a 404 as a missing repository", async () => {
  server.hubAnswers.set(listing, { status: 404 });
  expect((await failure()).message).toContain("no such repository or file in acme/model-GGUF");
});

test("distinguishes a busy hub from a missing network", async () => {
  server.hubAnswers.set(listing, { status: 429, headers: { "retry-after": "7" } });
  const error = await failure();
  expect([error.kind, error.retryAfterMs]).toEqual(["busy", 7000]);
});

test("recognizes an intercepting page, such as a sign-in page", async () => {
  server.hubAnswers.set(listing, { status: 200, body: "<html>Please sign in</html>" });
  expect((await failure()).message).toContain("no JSON");
  server.hubAnswers.set(listing, { status: 200, body: '{"files":[]}' });
  expect((await failure()).message).toContain("unknown form");
});

test("reports an unreachable host by name as a network failure", async () => {
  const gone = await HubServer.start();
  const { endpoint } = gone;
  await gone.stop();
  const error = await failure({ endpoint });
  expect(error.kind).toBe("network");
  expect(error.message).toBe(`Cannot reach ${new URL(endpoint).host} (ECONNREFUSED).`);
});

test("times out a host that accepts the connection and stays silent", async () => {
  const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const error = await failure({ endpoint: `http://127.0.0.1:${silent.port}` });
  silent.stop(true);
  expect([error.kind, error.message]).toEqual([
    "network",
    `Cannot reach 127.0.0.1:${silent.port}: no answer within 0.2 s.`,
  ]);
});
