// The cases of llhttp's own tests: our server and client read them as it does, or refuse.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { Http1Client } from "../../src/http1/client/client.ts";
import recorded from "../fixtures/llhttp/cases.json" with { type: "json" };
import { until } from "../support/headrace.ts";
import { rawUpstream } from "../support/http1/raw-upstream.ts";
import { startTestServer, type TestHttp1Server } from "../support/http1/server-fixture.ts";
import { withinMs } from "../support/long.ts";
import { rawUntilClosed } from "./raw-client.ts";

interface Case {
  name: string;
  type: string;
  bytes: Buffer;
  /** The messages as llhttp reads them. */
  messages: Message[];
  /** How many of `messages` it read to their end. */
  complete: number;
  fails: boolean;
  /** Whether the method is one of another protocol. */
  unknownMethod: boolean;
}

interface Message {
  method: string;
  url: string;
  body: string;
}

/** A case in the form that `tests/fixtures/llhttp/cases.json` has. */
interface RecordedCase {
  name: string;
  type: string;
  /** The bytes, written as llhttp's tests write them. */
  http: string;
  /** What llhttp makes of them. */
  log: string;
}

function casesOf(kind: "request" | "response"): Case[] {
  return (recorded.cases as RecordedCase[]).filter(({ name }) => name.startsWith(`${kind}/`)).map(toCase);
}

function toCase({ name, type, http, log }: RecordedCase): Case {
  const lines = log.split("\n");
  const messages: Message[] = [];
  for (const line of lines) {
    if (/ message begin$/.test(line)) messages.push({ method: "", url: "", body: "" });
    const [, span = "", value = ""] = /span\[(\w+)\]="(.*)"$/.exec(line) ?? [];
    const message = messages.at(-1);
    if (message && (span === "method" || span === "url" || span === "body")) message[span] += unescaped(value);
    // Line ends of a body are spans of their own in its log.
    const [, end = ""] = /span\[body\]=(cr|lf)$/.exec(line) ?? [];
    if (message && end !== "") message.body += end === "cr" ? "\r" : "\n";
  }
  return {
    ...{ name, type, messages },
    bytes: Buffer.from(bytesOf(http), "latin1"),
    complete: lines.filter((line) => / message complete$/.test(line)).length,
    fails: lines.some((line) => / error code=/.test(line)),
    unknownMethod: lines.some((line) => /Invalid method for HTTP/.test(line)),
  };
}

/** Lines end in CRLF; a backslash at the end of one joins it to the next. */
function bytesOf(http: string): string {
  return unescaped(
    http
      .replace(/\n$/, "")
      .replace(/\\\r?\n/g, "")
      .replace(/\r\n|\r|\n/g, "\r\n"),
  );
}

function unescaped(text: string): string {
  return text
    .replace(/\\r/g, "\r")
    .replace(/\\n/g, "\n")
    .replace(/\\t/g, "\t")
    .replace(/\\f/g, "\f")
    .replace(/\\x([0-9a-fA-F]+)/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\([0-7]{1,3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

const requests = casesOf("request");
const responses = casesOf("response");

// hardening: F14
describe("requests of the llhttp corpus", () => {
  let it: TestHttp1Server;
  beforeAll(() => {
    const answer = (method: string, target: string, body: ByteSpan) =>
      JSON.stringify([method, target, body.view.toString("latin1")]);
    it = startTestServer(
      async (request, reply) => {
        try {
          reply.send(200, {}, answer(request.method, request.target, await request.readBody(1_000_000)));
        } catch {
          reply.send(400, {}, "");
        }
      },
      { headMs: 200, idleMs: 200, bodyIdleMs: 200, lingerMs: 200 },
    );
  });
  afterAll(() => it[Symbol.asyncDispose]());

  test.each(requests.map((one) => [one.name, one] as const))("%s", async (_name, one) => {
    const { answers, closed } = await rawUntilClosed(it.url, one.bytes, 3_000);
    expect(closed).toBe(true);
    const served = answers.filter(({ status }) => status === 200);
    // Any method is one to our server; it is the routes that know which there are.
    if (one.unknownMethod) return;
    // Never more requests than it read to their end, and each the same.
    expect(served.length).toBeLessThanOrEqual(one.complete);
    for (const [index, { body }] of served.entries()) {
      const { method, url, body: content } = one.messages[index] as Message;
      const [gotMethod, gotTarget, gotBody] = JSON.parse(body) as string[];
      expect([gotMethod, gotTarget]).toEqual([method, url]);
      expect(gotBody).toBe(content);
    }
    // Nothing follows a refusal, which is one for a reason of the client's.
    for (const [index, { status }] of answers.entries()) {
      if (status === 200) continue;
      expect([400, 408, 414, 417, 431, 501, 505]).toContain(status);
      expect(index).toBe(answers.length - 1);
    }
    expect(it.faults).toEqual([]);
  });
});

// hardening: F14
describe("responses of the llhttp corpus", () => {
  test.each(responses.map((one) => [one.name, one] as const))("%s", async (_name, one) => {
    using upstream = rawUpstream(({ socket }) => {
      // Nothing that the first answer left over may answer the next request.
      if (upstream.requests.length > 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
      else socket.write(one.bytes);
    });
    const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
    try {
      const asked = ask(client);
      if (!(await Promise.race([asked, Bun.sleep(30)]))) {
        // What has no end of its own ends with its connection, on which the next request is not to be by then.
        const connection = await until(
          () => upstream.connections.find(({ requests }) => requests.length > 0),
          "it is asked",
        );
        connection.socket.end();
        await until(() => connection.closed, "the connection is closed");
      }
      const first = await asked;
      if (first.ended && one.complete > 0) expect(first.body).toBe(one.messages.find(isFinal(one))?.body ?? "");
      if (first.ended) expect(one.complete + (one.fails ? 0 : 1)).toBeGreaterThan(0);
      expect(await ask(client)).toEqual({ ended: true, body: "next" });
      expect(upstream.requests).toHaveLength(2);
    } finally {
      client.close();
    }
  });
});

/** Interim answers are none. */
function isFinal({ bytes, messages }: Case): (message: Message) => boolean {
  const statuses = [...bytes.toString("latin1").matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status]) => Number(status));
  return (message) => (statuses[messages.indexOf(message)] ?? 200) >= 200;
}

async function ask(client: Http1Client): Promise<{ ended: boolean; body: string }> {
  const timeouts = { firstByteTimeoutMs: withinMs(1_000), idleTimeoutMs: withinMs(1_000) };
  const request = { method: "POST", path: "/", headers: {}, body: "x" };
  const response = await Promise.resolve(client.send(request, timeouts, new Cancellation())).catch(() => undefined);
  if (!response) return { ended: false, body: "" };
  let body = "";
  return new Promise((resolve) => {
    response.body.flow({
      data(bytes) {
        body += bytes.view.toString("latin1");
      },
      end: () => resolve({ ended: true, body }),
      fail: () => resolve({ ended: false, body }),
    });
  });
}
