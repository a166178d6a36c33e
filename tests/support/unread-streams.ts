// Long streams of a node, and clients that do not read them: for what they hold, and whose streams that ends.
import { expect } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import { head, openRaw, type RawConnection } from "../hostile/raw-client.ts";
import { EndlessBody } from "./endless-body.ts";
import { until } from "./headrace.ts";
import { type JoinedNode, joinNode } from "./joined-node.ts";
import { messages, model } from "./node-requests.ts";
import type { Gateway } from "./nodes.ts";
import { chunk } from "./scripted-upstream.ts";

/** More than the kernel takes of a stream that nobody reads. */
const streamBytes = 12_000_000;
const piece = ByteSpan.of(Buffer.from(chunk({ content: "x".repeat(60_000) })));
const ending = ByteSpan.of(Buffer.from(`${chunk({}, "stop")}data: [DONE]\n\n`));

/** A key may hold 29 % of it, which is of eight streams, and its account as much again as the two of the other key take. */
const roomBytes = 8 * 1024 * 1024;

/** A node that answers each request with 12 MB, as fast as they are taken. */
export async function joinTalkativeNode(gateway: Gateway): Promise<JoinedNode> {
  const { token } = await gateway.token(["*"]);
  return await joinNode({
    ...{ url: gateway.url, token, name: "talkative", models: [model] },
    handle: async () => ({
      status: 200,
      headers: new Headers({ "content-type": "text/event-stream" }),
      body: longStream(),
    }),
  });
}

function longStream(): EndlessBody {
  let sentBytes = 0;
  return new EndlessBody(() => {
    if (sentBytes > streamBytes) return undefined;
    sentBytes += piece.length;
    return sentBytes > streamBytes ? ending : piece;
  });
}

/** Asks by that key for a stream, and reads none of it. */
async function unread({ url }: Gateway, key: string): Promise<RawConnection> {
  const connection = await openRaw(url);
  connection.socket.pause();
  const body = JSON.stringify({ model, messages, stream: true });
  const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${key}`, "Content-Type: application/json"];
  await connection.write(
    head("POST /v1/chat/completions HTTP/1.1", [...lines, `Content-Length: ${body.length}`]) + body,
  );
  return connection;
}

/**
 * One key leaves so many streams of the node unread that some of them have to end. Those of another key, which are not read
 * for a while either, come to their end once they are.
 */
export async function expectOwnStreamsAlone(gateway: Gateway): Promise<void> {
  const made = await gateway.request("/v1/keys", { body: { name: "beside" } });
  const { key: otherKey } = (await made.json()) as { key: string };
  const { maxBytes } = bufferedBytes;
  bufferedBytes.maxBytes = roomBytes;
  const before = bufferedBytes.refused.key;
  const stalling = await Promise.all(Array.from({ length: 12 }, () => unread(gateway, gateway.key)));
  const others: RawConnection[] = [];
  try {
    await until(() => bufferedBytes.refused.key > before, "the key holds what it may");
    const heldAlone = bufferedBytes.total;
    for (let n = 0; n < 2; n++) others.push(await unread(gateway, otherKey));
    await until(() => bufferedBytes.total > heldAlone + 200_000, "those of the other key wait as well");
    for (const { socket } of others) socket.resume();
    for (const other of others) {
      const { answers } = await other.answered(1, 20_000);
      expect(answers[0]?.body.slice(-200)).toEndWith("data: [DONE]\n\n");
    }
  } finally {
    for (const { socket } of [...stalling, ...others]) socket.destroy();
    bufferedBytes.maxBytes = maxBytes;
  }
  await until(() => bufferedBytes.total === 0, "all is given back");
}
