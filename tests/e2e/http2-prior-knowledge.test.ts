// Clients that speak HTTP/2 without asking first learn what to do, in frames that they understand.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:http2";
import { openRaw } from "../hostile/raw-client.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startHeadrace({ flags: { demo: false } });
});
afterAll(() => server[Symbol.asyncDispose]());

test("refuses HTTP/2 with prior knowledge by a GOAWAY that requires HTTP/1.1 and says why", async () => {
  const client = connect(server.url);
  const reported = Promise.withResolvers<{ code: number; lastStream: number; text: string }>();
  client.on("error", () => {});
  client.on("goaway", (code, lastStream, data) => reported.resolve({ code, lastStream, text: String(data) }));
  const request = client.request({ ":path": "/healthz" });
  request.on("error", () => {});
  request.end();
  expect(await reported.promise).toEqual({
    code: 13,
    lastStream: 0,
    text: "HTTP/2 is not spoken here. Let the client use HTTP/1.1, or put a proxy that speaks HTTP/2 in front.",
  });
  client.destroy();
  await until(() => server.logged("request").some((line) => line["status"] === 505), "the line of the refusal");
});

test("fails curl --http2-prior-knowledge with the reason, and serves --http2 over HTTP/1.1", async () => {
  const prior = await curl("--http2-prior-knowledge");
  expect(prior.exit).toBe(16);
  expect(prior.stderr).toContain("error=13");
  const asking = await curl("--http2");
  expect([asking.exit, asking.stdout]).toEqual([0, '{"status":"ok"}']);
});

test("answers an HTTP/2 preface only with its refusal and closes the connection, whatever follows", async () => {
  const connection = await openRaw(server.url);
  await connection.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3)}`);
  const { text, closed } = await connection.ended();
  expect(closed).toBe(true);
  expect(text).toStartWith("\0\0\0\x04\0\0\0\0\0\0\0");
  expect(text).not.toContain("HTTP/1.1 ");
});

async function curl(...flags: string[]): Promise<{ exit: number; stdout: string; stderr: string }> {
  const command = ["curl", "--silent", "--verbose", "--max-time", "20", ...flags, `${server.url}/healthz`];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { exit: await child.exited, stdout, stderr };
}
