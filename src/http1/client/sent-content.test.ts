// Bodies that are streamed to a server, over real sockets: their length is announced, their source waits for a slow
// server, and is notified of the end.
import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { ok, type RawConnection, type RawUpstream, rawUpstream } from "../../../tests/support/http1/raw-upstream.ts";
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { readAll } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { Http1Client } from "./client.ts";
import type { ClientRequest, SentContent } from "./client-contract.ts";

const opened: Disposable[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each[Symbol.dispose]();
});

/** Content whose pieces are read one by one, as from a file, with counts of what was read, opened and cancelled. */
class Pieces implements SentContent {
  readonly length: number;
  readonly #piece: Buffer;
  given = 0;
  opened = 0;
  cancelled = 0;

  constructor(piece: Buffer, times: number) {
    this.#piece = piece;
    this.length = piece.length * times;
  }

  open(breaksAt = Number.POSITIVE_INFINITY): BodySource {
    this.opened++;
    this.given = 0;
    let sink: BodySink | undefined;
    let isPaused = false;
    const give = () => {
      if (!sink || isPaused) return;
      if (this.given >= breaksAt) return sink.fail(new Error("the file is gone"));
      if (this.given === this.length) return sink.end();
      this.given += this.#piece.length;
      sink.data(ByteSpan.of(this.#piece));
      setImmediate(give);
    };
    return {
      flow(to) {
        sink = to;
        give();
      },
      pause: () => {
        isPaused = true;
      },
      resume() {
        if (!isPaused) return;
        isPaused = false;
        give();
      },
      cancel: () => {
        this.cancelled++;
        sink = undefined;
      },
    };
  }
}

const request = (content: SentContent): ClientRequest => ({
  method: "POST",
  path: "/x",
  headers: {},
  requestId: "r",
  content,
});

function setup(answer: (connection: RawConnection, request: string) => void): {
  upstream: RawUpstream;
  client: Http1Client;
} {
  const upstream = rawUpstream(answer);
  const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
  opened.push(upstream, { [Symbol.dispose]: () => client.close() });
  return { upstream, client };
}

const timeouts = { firstByteTimeoutMs: 3_000, idleTimeoutMs: 3_000 };

async function ask(
  client: Http1Client,
  content: SentContent,
  more: Partial<typeof timeouts> = {},
  cancellation = new Cancellation(),
) {
  const { body } = await client.send(request(content), { ...timeouts, ...more }, cancellation);
  return (await readAll(body, 1_000_000, new Cancellation(), () => {})).text;
}

const lengthOf = (text: string) => String(text.length - text.indexOf("\r\n\r\n") - 4);

test("sends streamed content with its length, and reuses the connection", async () => {
  const { upstream, client } = setup(({ socket }, all) => void socket.write(ok(lengthOf(all))));
  const small = new Pieces(Buffer.from("abc"), 2);
  expect(await ask(client, small)).toBe("6");
  expect(upstream.requests[0]).toBe(
    `POST /x HTTP/1.1\r\nhost: 127.0.0.1:${upstream.port}\r\nconnection: keep-alive\r\nx-request-id: r\r\ncontent-length: 6\r\n\r\nabcabc`,
  );
  expect(await ask(client, new Pieces(Buffer.alloc(100_000, "x"), 50))).toBe("5000000");
  expect(await ask(client, new Pieces(Buffer.from(""), 1))).toBe("0");
  expect(upstream.connections).toHaveLength(1);
});

test("pauses the content's source while the server reads nothing, and times the answer after that", async () => {
  let [taken, head] = [0, 0];
  let socket: Socket | undefined;
  const content = new Pieces(Buffer.alloc(256 * 1024, "x"), 160);
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(accepted) {
        socket = accepted;
      },
      data(accepted, bytes) {
        if (taken === 0) head = bytes.indexOf("\r\n\r\n") + 4;
        taken += bytes.length;
        if (taken === head + content.length) accepted.write(ok("all of it"));
      },
    },
  });
  const client = new Http1Client({ hostname: "127.0.0.1", port: listener.port });
  opened.push({ [Symbol.dispose]: () => listener.stop(true) }, { [Symbol.dispose]: () => client.close() });
  const answer = ask(client, content, { firstByteTimeoutMs: 700 });
  while (taken === 0) await Bun.sleep(1);
  // In all this takes longer than `firstByteTimeoutMs`, but the server never reads nothing for that long.
  for (let i = 0; i < 4; i++) {
    socket?.pause();
    await Bun.sleep(250);
    expect(content.given).toBeLessThan(content.length);
    const before = taken;
    socket?.resume();
    while (taken - before < 6_000_000) await Bun.sleep(1);
  }
  expect(await answer).toBe("all of it");
});

test("ends the request and its connection if the content's source fails", async () => {
  const { upstream, client } = setup(() => {});
  const content = new Pieces(Buffer.alloc(1_000, "x"), 10);
  const breaking = { length: content.length, open: () => content.open(3_000) };
  await expect(ask(client, breaking)).rejects.toThrow("the file is gone");
  while (!upstream.connections[0]?.closed) await Bun.sleep(1);
  expect(upstream.requests).toEqual([]);
});

test("delivers an answer that comes before all content was sent, and sends no more", async () => {
  const { upstream, client } = setup(() => {});
  const content = new Pieces(Buffer.alloc(64 * 1024, "x"), 2_000);
  const answer = ask(client, content);
  while ((upstream.connections[0]?.received.length ?? 0) < 200_000) await Bun.sleep(1);
  upstream.connections[0]?.socket.write(ok("enough"));
  expect(await answer).toBe("enough");
  expect(content.cancelled).toBe(1);
  expect(content.given).toBeLessThan(content.length);
});

test("cancels the content's source with its request, and does not repeat a broken request", async () => {
  const { upstream, client } = setup(() => {});
  const cancellation = new Cancellation();
  const content = new Pieces(Buffer.alloc(64 * 1024, "x"), 2_000);
  const answer = ask(client, content, {}, cancellation);
  while ((upstream.connections[0]?.received.length ?? 0) < 100_000) await Bun.sleep(1);
  cancellation.cancel(new Error("left"));
  await expect(answer).rejects.toThrow("left");
  expect(content.cancelled).toBe(1);
  const cut = new Pieces(Buffer.alloc(64 * 1024, "x"), 2_000);
  const broken = ask(client, cut);
  while ((upstream.connections[1]?.received.length ?? 0) < 100_000) await Bun.sleep(1);
  upstream.connections[1]?.socket.terminate();
  await expect(broken).rejects.toMatchObject({ fault: "broken" });
  expect(cut.opened).toBe(1);
});
