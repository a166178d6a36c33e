// Over TLS nothing is sent to a server whose certificate is not trusted for its host.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ok, type RawUpstream, rawUpstream } from "../../../tests/support/http1/raw-upstream.ts";
import { readAll } from "../../base/bytes/body-source.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { Http1Client, type OriginTls } from "./client.ts";
import { ClientError } from "./client-contract.ts";

interface Identity {
  key: string;
  cert: string;
}

let directory: string;
let right: Identity;
let other: Identity;
let upstream: RawUpstream | undefined;
let client: Http1Client | undefined;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-tls-"));
  right = selfSigned("right", "DNS:localhost,IP:127.0.0.1");
  other = selfSigned("other", "DNS:other.example");
});

afterAll(() => rmSync(directory, { recursive: true }));

afterEach(() => {
  client?.close();
  upstream?.[Symbol.dispose]();
});

function selfSigned(name: string, subject: string): Identity {
  const [key, cert] = [join(directory, `${name}.key`), join(directory, `${name}.pem`)];
  const made = Bun.spawnSync(
    [
      ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", `subjectAltName=${subject}`],
    ],
    { stderr: "pipe" },
  );
  if (!made.success) throw new Error(made.stderr.toString());
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

function connectTo(identity: Identity, tls: OriginTls): Http1Client {
  upstream = rawUpstream(({ socket }, request) => socket.write(ok(`${request.length}`)), { tls: identity });
  client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port, tls });
  return client;
}

async function ask(from: Http1Client, body = "{}"): Promise<string> {
  const timeouts = { firstByteTimeoutMs: 3_000, idleTimeoutMs: 3_000 };
  const response = await from.send({ method: "POST", path: "/", headers: {}, body }, timeouts, new Cancellation());
  return (await readAll(response.body, 1_000, new Cancellation(), () => {})).text;
}

async function refusal(from: Http1Client): Promise<ClientError> {
  const error = await ask(from).catch((reason: unknown) => reason);
  if (error instanceof ClientError) return error;
  throw new Error("was not refused", { cause: error });
}

test.each(["localhost", "127.0.0.1"])(
  "sends requests on one connection with a trusted certificate for %s",
  async (serverName) => {
    const from = connectTo(right, { serverName, ca: right.cert });
    const length = await ask(from);
    expect(await ask(from)).toBe(length);
    expect(Number(await ask(from, "x".repeat(3_000_000)))).toBeGreaterThan(3_000_000);
    expect(upstream?.connections).toHaveLength(1);
  },
);

test("refuses an untrusted self-signed certificate before sending a byte", async () => {
  const error = await refusal(connectTo(right, { serverName: "localhost" }));
  expect(error.fault).toBe("connect");
  expect(error.message).toContain("DEPTH_ZERO_SELF_SIGNED_CERT");
  expect(upstream?.connections.map(({ received, requests }) => [received, requests])).toEqual(
    (upstream?.connections ?? []).map(() => ["", []]),
  );
  expect(client?.counts.connections).toBe(0);
});

test("refuses a trusted certificate of another host before sending a byte", async () => {
  const error = await refusal(connectTo(other, { serverName: "localhost", ca: other.cert }));
  expect(error.fault).toBe("connect");
  expect(error.message).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
  expect(upstream?.requests).toEqual([]);
  expect((upstream?.connections ?? []).every(({ received }) => received === "")).toBe(true);
});

test("refuses a server that does not speak TLS", async () => {
  upstream = rawUpstream(() => {});
  client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port, tls: { serverName: "localhost" } });
  const answer = refusal(client);
  const deadline = performance.now() + 2_000;
  while (upstream.connections.length === 0 && performance.now() < deadline) await Bun.sleep(1);
  upstream.connections[0]?.socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
  expect((await answer).fault).toBe("connect");
  expect(client.counts.connections).toBe(0);
});
