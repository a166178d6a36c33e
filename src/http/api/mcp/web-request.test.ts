// Tests answers that are web `Response` objects, written to a client's connection.
import { expect, test } from "bun:test";
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { Cancellation } from "../../../base/cancellation.ts";
import { answerOf } from "./web-request.ts";

function clientThatIsBehind() {
  const got: string[] = [];
  const client: ClientStream = {
    write(bytes) {
      got.push(bytes);
      return false;
    },
    writeAround: () => false,
    onDrain: undefined,
    end: () => got.push("end"),
    abort: () => got.push("abort"),
  };
  return { client, got };
}

function streamed(clientGone: Cancellation) {
  let to: ReadableStreamDefaultController<Uint8Array> | undefined;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      to = controller;
    },
    cancel: () => {
      isCancelled = true;
    },
  });
  const answer = answerOf(new Response(body, { headers: { "content-type": "text/event-stream" } }), clientGone);
  return {
    answer,
    push: (text: string) => to?.enqueue(Buffer.from(text)),
    close: () => to?.close(),
    isCancelled: () => isCancelled,
  };
}

test("writes events at once to a slow client's connection, where their bytes are counted", async () => {
  const { client, got } = clientThatIsBehind();
  const { answer, push, close } = streamed(new Cancellation());
  if (!("begin" in answer)) throw new Error("not streamed");
  answer.begin(client);
  for (let i = 0; i < 5; i++) push(`${i}`);
  close();
  await Bun.sleep(5);
  expect(got).toEqual(["0", "1", "2", "3", "4", "end"]);
});

test("ends the client's stream when the gateway ends it, and reads no more", async () => {
  const { client, got } = clientThatIsBehind();
  const clientGone = new Cancellation();
  const { answer, push, isCancelled } = streamed(clientGone);
  if (!("begin" in answer)) throw new Error("not streamed");
  answer.begin(client);
  push("0");
  clientGone.cancel();
  await Bun.sleep(5);
  expect([got.at(-1), isCancelled()]).toEqual(["end", true]);
});
