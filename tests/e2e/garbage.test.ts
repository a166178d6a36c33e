// What requests leave behind is young garbage: none of it waits for a full collection, which walks through all of the heap.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatScript, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";

const atOnce = 16;
const requestsOfRound = 160;
const rounds = 3;
/**
 * The part of the objects that a round left: without a set that leads to them a few hundredths, with one a quarter to a
 * half.
 */
const maxKept = 0.1;

let upstream: ScriptedUpstream;
let server: WatchedServer;

beforeAll(async () => {
  upstream = await startUpstream(chatScript());
  const { url } = upstream;
  const model = (name: string) => `  - { id: ${name}, deployments: [{ upstream: ${name}, model: upstream-model }] }\n`;
  server = await startWatchedServer({
    // Bun collects by the clock as well, which would free some of a round before it is looked at.
    within: ["env", "BUN_GC_TIMER_DISABLE=1"],
    yaml: `upstreams:
  - { name: wide, url: "${url}", max_concurrency: 1000 }
  - { name: narrow, url: "${url}", max_concurrency: 4 }
  - { name: fetched, url: "${url}", max_concurrency: 1000, http_client: fetch }
models:
${["wide", "narrow", "fetched"].map(model).join("")}`,
  });
});

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

interface Chat {
  model: string;
  stream?: boolean;
  headers?: Record<string, string>;
}

async function chat({ model, stream = false, headers = {} }: Chat): Promise<void> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "x" }] }),
  });
  expect(response.status).toBe(200);
  await response.text();
}

async function round(kind: Chat): Promise<void> {
  let left = requestsOfRound;
  const client = async () => {
    while (left-- > 0) await chat(kind);
  };
  await Promise.all(Array.from({ length: atOnce }, client));
}

test.each([
  ["objects that chats have left", "Object", { model: "wide" }],
  ["objects that streams have left", "Object", { model: "wide", stream: true }],
  ["objects of chats that had to wait for a place", "Object", { model: "narrow" }],
  ["sockets of clients that connect for each chat", "TCPSocket", { model: "wide", headers: { connection: "close" } }],
  ["what cancels the runtime's fetch", "AbortController", { model: "fetched" }],
] as [string, string, Chat][])(
  "frees %s in a minor garbage collection",
  async (_, type, kind) => {
    await round(kind);
    await server.collect();
    const kept: number[] = [];
    for (let i = 0; i < rounds; i++) {
      await round(kind);
      const { before, minor, full } = await server.collect();
      const count = (objects: typeof full) => objects[type] ?? 0;
      const left = count(before) - count(full);
      expect(left).toBeGreaterThan(requestsOfRound / 2);
      kept.push((count(minor) - count(full)) / left);
    }
    // One in which a collection came by itself, while requests were open, says nothing.
    kept.sort((a, b) => a - b);
    expect(kept[rounds >> 1]).toBeLessThan(maxKept);
  },
  120_000,
);
