// Somebody between a server and its database or Redis: no password goes to whoever cannot prove to be them.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { RedisConnection } from "../../src/storage/redis/redis-connection.ts";
import { openPostgres } from "../../src/storage/sql/database.ts";
import { until } from "../support/headrace.ts";

interface Identity {
  key: string;
  cert: string;
  path: string;
}

let directory: string;
let right: Identity;
let other: Identity;
const servers: Server[] = [];
/** What came through: decrypted, or in the clear. */
let received = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-database-tls-"));
  right = selfSigned("right", "DNS:localhost,IP:127.0.0.1");
  other = selfSigned("other", "DNS:other.example");
});
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  received = "";
});

function selfSigned(name: string, subject: string): Identity {
  const [key, path] = [join(directory, `${name}.key`), join(directory, `${name}.pem`)];
  const made = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-keyout", key, "-out", path, "-days", "2", "-subj", "/CN=localhost", "-addext", `subjectAltName=${subject}`],
  ]);
  if (!made.success) throw new Error(made.stderr.toString());
  return { key: readFileSync(key, "utf8"), cert: readFileSync(path, "utf8"), path };
}

function listening(server: Server): Promise<number> {
  servers.push(server);
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
  );
}

/** Speaks TLS with this certificate; `greet` is what comes before it, as PostgreSQL has it. */
async function inTheMiddle(identity: Identity, greet: (client: Socket, go: () => void) => void): Promise<number> {
  const inner = createTlsServer(identity, (socket) => {
    socket.on("data", (bytes) => (received += bytes.toString("latin1")));
    socket.on("error", () => {});
  });
  inner.on("tlsClientError", () => {});
  const port = await listening(inner);
  return listening(
    createServer((client) => {
      client.on("error", () => {});
      greet(client, () => {
        const to = connect(port, "127.0.0.1").on("error", () => {});
        client.pipe(to).pipe(client);
      });
    }),
  );
}

/** Says yes to TLS where it is asked for; what else comes is in the clear. */
const asPostgres = (client: Socket, go: () => void, answer = "S") => {
  client.once("data", (bytes) => {
    if (bytes.length !== 8) received += bytes.toString("latin1");
    client.write(answer);
    if (answer === "S") go();
    else client.on("data", (more) => (received += more.toString("latin1")));
  });
};

const password = "canary-31415";
const urlAt = (port: number, mode: string) => `postgres://somebody:${password}@localhost:${port}/db?sslmode=${mode}`;
const refusal = (url: string) =>
  openPostgres(url, { waitMs: 0 }).then(
    () => "connected",
    (error: unknown) => String(error),
  );

describe("TLS to PostgreSQL", () => {
  // hardening: F35
  test.each(["verify-ca", "verify-full"])(
    "sends nothing to PostgreSQL with an untrusted certificate and sslmode=%s",
    async (mode) => {
      const message = await refusal(urlAt(await inTheMiddle(right, asPostgres), mode));
      expect(message).toMatch(
        /no TLS connection can be made .*certificate.*NODE_EXTRA_CA_CERTS.*DEPTH_ZERO_SELF_SIGNED_CERT/,
      );
      expect(message).not.toContain(password);
      expect(received).toBe("");
    },
  );

  // hardening: F35
  test.each(["require", "verify-ca", "verify-full"])(
    "sends nothing in the clear to PostgreSQL without TLS and with sslmode=%s",
    async (mode) => {
      const port = await inTheMiddle(right, (client, go) => asPostgres(client, go, "N"));
      expect(await refusal(urlAt(port, mode))).toContain("no TLS connection can be made");
      expect(received).toBe("");
    },
  );

  // hardening: F35
  test("sends nothing to PostgreSQL with a certificate for another host and sslmode=verify-full", async () => {
    const port = await inTheMiddle(other, asPostgres);
    const code = `
      import { openPostgres } from ${JSON.stringify(join(import.meta.dir, "../../src/storage/sql/database.ts"))};
      await openPostgres(${JSON.stringify(urlAt(port, "verify-full"))}, { waitMs: 0 }).catch((error) => console.log(String(error)));
      process.exit();`;
    const child = Bun.spawn([process.execPath, "-e", code], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: other.path },
      stdout: "pipe",
    });
    expect(await new Response(child.stdout).text()).toMatch(/no TLS connection can be made .*ALTNAME_INVALID/);
    expect(received).toBe("");
  });
});

// hardening: F35
test("sends no password to Redis over rediss with an untrusted certificate", async () => {
  let connections = 0;
  const port = await inTheMiddle(right, (_, go) => {
    connections++;
    go();
  });
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const url = `rediss://somebody:${password}@localhost:${port}/0`;
  const redis = new RedisConnection({ url, log, purpose: "limits", onConnect: async () => {}, onAway: () => {} });
  await redis.start();
  await until(() => connections > 0, "a connection");
  expect(redis.isUp).toBe(false);
  expect(redis.reason).not.toContain(password);
  redis.close();
  expect(received).toBe("");
});
