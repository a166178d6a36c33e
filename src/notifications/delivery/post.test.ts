// Posts to receivers that work, fail, are slow or have moved.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { ok, type RawUpstream, rawUpstream } from "../../../tests/support/http1/raw-upstream.ts";
import { systemClock } from "../../base/clock.ts";
import { type PostOptions, post } from "./post.ts";
import { newWebhookSecret, signatureHeaders } from "./signature.ts";

const development = { allowLoopback: true };
let directory: string;
let identity: { key: string; cert: string };
let upstream: RawUpstream | undefined;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-post-"));
  const [key, cert] = [join(directory, "key"), join(directory, "pem")];
  const subject = ["-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const made = Bun.spawnSync(["openssl", "req", "-x509", ...kind, "-keyout", key, "-out", cert, ...subject]);
  if (!made.success) throw new Error(made.stderr.toString());
  identity = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
});

afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => upstream?.[Symbol.dispose]());

function options(given: Partial<PostOptions> = {}): PostOptions {
  return { rules: development, resolve: async () => ["127.0.0.1"], clock: systemClock, ...given };
}

const message = { headers: { "content-type": "application/json" }, body: "{}" };

// hardening: F36
test("connects to the checked address of a receiver, whose certificate must match its name", async () => {
  const seen: string[] = [];
  upstream = rawUpstream(
    ({ socket }, request) => {
      seen.push(String(request));
      socket.write(ok("thanks"));
    },
    { tls: identity },
  );
  const to = (name: string) =>
    post(`https://${name}:${upstream?.port}/in?a=b`, message, options({ ca: identity.cert }));
  expect(await to("hooks.example")).toMatchObject({ status: 200, error: null });
  expect(seen[0]).toStartWith(`POST /in?a=b HTTP/1.1\r\nhost: hooks.example:${upstream.port}\r\n`);
  expect(await to("other.example")).toMatchObject({ status: null, error: "not_connected" });
  expect(seen).toHaveLength(1);
});

// hardening: F36
test("resolves a receiver's name once in each attempt, so that a later change has no effect", async () => {
  upstream = rawUpstream(({ socket }) => socket.write(ok("")));
  let asked = 0;
  // Every second DNS query returns an address that is not public.
  const resolve = async () => (++asked % 2 === 1 ? ["127.0.0.1"] : ["10.255.255.1"]);
  const first = await post(`http://localhost:${upstream.port}/`, message, options({ resolve }));
  expect([first.status, asked]).toEqual([200, 1]);
  const second = await post(`http://localhost:${upstream.port}/`, message, options({ resolve }));
  expect([second.status, second.error, asked]).toEqual([null, "address_not_public", 2]);
});

test("refuses a name with a private address in production", async () => {
  let connections = 0;
  upstream = rawUpstream(({ socket }) => {
    connections++;
    socket.write(ok(""));
  });
  for (const inside of ["127.0.0.1", "::1", "10.0.0.1"]) {
    const resolve = async () => ["8.8.8.8", inside];
    const posted = await post(
      `https://hooks.example:${upstream.port}/`,
      message,
      options({ rules: { allowLoopback: false }, resolve }),
    );
    expect(posted).toMatchObject({ status: null, error: "address_not_public" });
  }
  expect(connections).toBe(0);
});

// hardening: F36
test("returns a redirect as the result without following it", async () => {
  const seen: string[] = [];
  upstream = rawUpstream(({ socket }, request) => {
    seen.push(String(request).split("\r\n", 1).join(""));
    socket.write("HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n");
  });
  expect(await post(`http://127.0.0.1:${upstream.port}/`, message, options())).toMatchObject({
    status: 307,
    error: null,
  });
  expect(seen).toEqual(["POST / HTTP/1.1"]);
});

// long-lived: webhookDelivery.idle
test("gives up a silent receiver after the timeout, and reads no endless response", async () => {
  upstream = rawUpstream(() => {});
  const posted = await post(`http://127.0.0.1:${upstream.port}/`, message, options({ timeoutMs: 200 }));
  expect(posted).toMatchObject({ status: null, error: "timeout" });
  upstream[Symbol.dispose]();
  upstream = rawUpstream(({ socket }) =>
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n${"a".repeat(1_000)}`),
  );
  expect(await post(`http://127.0.0.1:${upstream.port}/`, message, options())).toMatchObject({ status: 200 });
});

test("returns the seconds in Retry-After of a receiver", async () => {
  upstream = rawUpstream(({ socket }) =>
    socket.write("HTTP/1.1 429 No\r\nretry-after: 77\r\ncontent-length: 0\r\n\r\n"),
  );
  expect(await post(`http://127.0.0.1:${upstream.port}/`, message, options())).toMatchObject({
    status: 429,
    retryAfterSeconds: 77,
  });
});

test.each([
  ["86401", 86_400],
  ["999999999", 86_400],
  ["77 s", undefined],
  ["-1", undefined],
  ["1e3", undefined],
])("returns %p in a receiver's Retry-After as %p seconds", async (asked, seconds) => {
  upstream = rawUpstream(({ socket }) =>
    socket.write(`HTTP/1.1 429 No\r\nretry-after: ${asked}\r\ncontent-length: 0\r\n\r\n`),
  );
  const { retryAfterSeconds } = await post(`http://127.0.0.1:${upstream.port}/`, message, options());
  expect(retryAfterSeconds).toBe(seconds);
});

test("signs posts so that the Standard Webhooks library verifies them with either secret during a rotation", async () => {
  const [old, fresh] = [newWebhookSecret(), newWebhookSecret()];
  const body = JSON.stringify({ type: "webhook.test", data: { text: "ü" } });
  const headers = await signatureHeaders({ id: "evt_1", body, nowSeconds: Math.floor(Date.now() / 1000) }, [
    old,
    fresh,
  ]);
  expect(old).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  for (const secret of [old, fresh]) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(newWebhookSecret()).verify(body, headers)).toThrow();
  expect(() => new Webhook(old).verify(`${body} `, headers)).toThrow();
});
