// The stream contract: each format of a server with each format of a client, whatever the server leaves out, repeats or adds.
import { describe, expect, jest, test } from "bun:test";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { RelayOptions, StreamStop } from "../../src/inference/answer/relay-options.ts";
import type { Dispatched } from "../../src/inference/routing/attempt.ts";
import { dialects } from "../../src/requests/dialects/dialects.ts";
import type { TextGuard } from "../../src/requests/dialects/texts/text-guard.ts";
import { translatedAnswer } from "../../src/requests/dialects/translation/translated-answer.ts";
import { decodedRequest } from "../support/decoded-request.ts";
import { Source, settled, start } from "../support/relay.ts";
import {
  type ReadStream,
  readStrictly,
  type StreamFormat,
  strictStreams,
  wholeAnswer,
} from "../support/strict-streams.ts";

const conversations = ["chat", "response", "message"] as const;
const others = ["completion", "transcription", "image"] as const;
const pairs: readonly (readonly [from: StreamFormat, to: StreamFormat])[] = [
  ...conversations.flatMap((from) => conversations.map((to) => [from, to] as const)),
  ...others.map((format) => [format, format] as const),
];
const seal = { seal: (text: string) => text, open: () => undefined };

function open(from: StreamFormat, to: StreamFormat, options: Partial<RelayOptions> = {}, contentType?: string) {
  const source = new Source(contentType);
  const [{ format: engineFormat }, { format, errorEvent }] = [dialects[from], dialects[to]];
  const translation =
    from === to || !engineFormat || !format
      ? undefined
      : { from: engineFormat, to: format, names: new Map(), seal, errorEvent };
  const dispatched: Dispatched = { ...source.dispatched, translation };
  const request = decodedRequest({ stream: true, ...strictStreams[to].request }, to);
  return { source, ...start(dispatched, { request, ...options }) };
}

function answerOf(from: StreamFormat): Partial<ReadStream> {
  if (from === "image") return { text: "BBBBCCCC", error: undefined };
  const isConversation = from === "chat" || from === "response" || from === "message";
  const calls = isConversation ? wholeAnswer.calls : [];
  return { text: wholeAnswer.text, calls, reason: isConversation ? "calls" : "stop", error: undefined };
}

const eventsOf = (from: StreamFormat) => strictStreams[from].events.map(({ text }) => text);

/** What the client gets of these pieces, all in one turn, before the server closes the connection; then it closes. */
async function answered(
  from: StreamFormat,
  to: StreamFormat,
  pieces: readonly string[],
  options?: Partial<RelayOptions>,
) {
  const { source, client, ends } = open(from, to, options);
  for (const piece of pieces) source.send(piece);
  await settled();
  const endedBefore = client.ended;
  source.end();
  await settled();
  expect(client.ended).toBe(true);
  expect(ends).toHaveLength(1);
  return { endedBefore, text: client.text, read: readStrictly(to, client.text) };
}

const structure = pairs.flatMap(([from, to]) =>
  strictStreams[from].events.flatMap(({ name, isContent }, at) => (isContent ? [] : [[from, to, name, at] as const])),
);
/** Events without which nobody knows whether the answer is whole. */
const decisive = new Set(["response.completed", "transcript.text.done"]);

describe.each(pairs)("a stream of %s for a client of %s", (from, to) => {
  test("sends a stream that a strict client reads to its last event", async () => {
    const { read, endedBefore } = await answered(from, to, eventsOf(from));
    expect(read).toMatchObject(answerOf(from));
    if (from !== "image") expect(read.outputTokens).toBe(wholeAnswer.outputTokens);
    expect(endedBefore).toBe(true);
  });

  test("reads a stream the same whole, cut at each byte, and in pieces in place", async () => {
    const { text } = await answered(from, to, eventsOf(from));
    const all = eventsOf(from).join("");
    const bytes = Buffer.from(all).toString("latin1");
    for (const pieces of [[all], [...bytes].map((byte) => byte)]) {
      const { source, client } = open(from, to);
      for (const piece of pieces) source.send(pieces.length === 1 ? piece : Buffer.from(piece, "latin1"));
      await settled();
      expect(client.text).toBe(text);
    }
  });

  test.each([
    ...[":\n\n", ": ping\n", "\n\n", "\r\n", "data:\n\n", "data\n\n", "data: \n\n", 'data: ""\n\n', "data: {}\n\n"],
    ...["data: null\n\n", "data: ping\n\n", 'event: ping\ndata: ""\n\n', "event: ping\ndata:\n\n", "event: ping\n\n"],
    ...["event: keepalive\ndata: 17\n\n", 'event: heartbeat\ndata: {"at":17}\n\n', "id: 7\n\n", "retry: 5\n\n"],
    ...["event: ping\r\ndata: ping\r\n\r\n", "data: : keep-alive\n\n", 'data: {"type":"heartbeat"}\n\n'],
    ...['event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n'],
    ...['event: keep-alive\ndata: {"at":1700000000,"type":"keep-alive"}\n\n'],
  ])("reads a stream the same with the heartbeat %j between its events", async (heartbeat) => {
    const { text } = await answered(from, to, eventsOf(from));
    const beaten = eventsOf(from).flatMap((event) => [heartbeat, event]);
    expect((await answered(from, to, [...beaten, heartbeat])).text).toBe(text);
  });

  test("reads a stream the same with ping events, which only Messages clients receive", async () => {
    const ping = 'event: ping\ndata: {"type":"ping","at":1700000000}\n\n';
    const { text, read } = await answered(from, to, eventsOf(from));
    const beaten = await answered(from, to, [...eventsOf(from).flatMap((event) => [ping, event]), ping]);
    expect(beaten.read).toEqual(read);
    if (from !== "message" || to !== "message") expect(beaten.text).toBe(text);
  });

  test.if(from === "response" || from === "message")(
    "reads a stream the same after an event of an unknown type",
    async () => {
      const { text } = await answered(from, to, eventsOf(from));
      const queued = 'event: queue.status\ndata: {"type":"queue.status","position":3}\n\n';
      expect((await answered(from, to, [queued, ...eventsOf(from)])).text).toBe(text);
    },
  );

  test("reads a stream the same with blanks around its end mark", async () => {
    const { text } = await answered(from, to, eventsOf(from));
    const pieces = eventsOf(from).map((event) => event.replace("data: [DONE]", "data:  [DONE] "));
    expect((await answered(from, to, pieces)).text).toBe(text);
  });

  test.each(["guarded", "asked about", "recorded", "stoppable"])(
    "reads a stream the same with each policy (%s)",
    async (policy) => {
      const guard: TextGuard = {
        asks: policy === "asked about",
        blockedBy: undefined,
        bytesOfText: 1,
        pieceLength: 1_000,
        open: () => ({ feed: (text) => text, end: () => "" }),
        ask: async (texts) => texts.map(({ text }) => text),
      };
      const stop: StreamStop = {
        isFar: () => false,
        check: () => "goes_on",
        mark: () => ({ stopped_by: "quota", quota: {} }),
      };
      const options: Partial<RelayOptions> =
        policy === "stoppable" ? { stop } : policy === "recorded" ? { recorded: true } : { recorded: false, guard };
      const { source, client } = open(from, to, options);
      for (const event of eventsOf(from)) source.send(event);
      await settled();
      await Bun.sleep(1);
      expect(client.ended).toBe(true);
      expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
    },
  );

  test("reports an error of the server as the first event or later", async () => {
    const { fault } = strictStreams[from];
    const bare = 'event: error\ndata: {"message":"out of memory"}\n\ndata: [DONE]\n\n';
    for (const said of [fault, bare, "event: error\ndata: out of memory\n\ndata: [DONE]\n\n"]) {
      for (const before of [0, 1, 2]) {
        const { source, client, ends } = open(from, to);
        for (const event of eventsOf(from).slice(0, before)) source.send(event);
        source.send(said);
        await settled();
        expect([client.ended, source.cancelled, ends.length]).toEqual([true, true, 1]);
        expect(client.text).toContain("out of memory");
        expect(client.text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
      }
    }
  });

  test("reports an error if a stream is cut or reset before its finish reason, and none after it", async () => {
    const events = strictStreams[from].events;
    const reasons = ["finish", "message_delta", "response.completed", "transcript.text.done"];
    const finish = events.findIndex(({ name }) => reasons.includes(name));
    const whole = from === "image" ? events.length - 1 : finish;
    for (let count = 0; count <= events.length; count++) {
      for (const how of ["end", "reset"] as const) {
        const { source, client } = open(from, to);
        for (const { text } of events.slice(0, count)) source.send(text);
        if (how === "end") source.end();
        else source.fail(new Error("ECONNRESET"));
        await settled();
        expect(client.ended).toBe(true);
        if (count > whole) expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
        // The first of two images is whole by itself.
        else if (from !== "image" || count < 2) expect(client.text).toMatch(/closed the connection|broke off/);
      }
    }
  });

  test.each(["application/json", "text/event-stream", "text/plain", "application/octet-stream"])(
    "reads a whole answer of type %s in place of a stream the same",
    async (type) => {
      const whole = JSON.stringify(strictStreams[from].whole);
      const marked = Buffer.from(`\ufeff\n${whole}`);
      const inPieces = [marked.subarray(0, 1), marked.subarray(1, 3), marked.subarray(3, 4), marked.subarray(4)];
      for (const pieces of [[whole], [marked], [whole.slice(0, 40), whole.slice(40), "\n"], inPieces]) {
        const { source, client } = open(from, to, {}, type);
        for (const piece of pieces) source.send(piece);
        source.end();
        await settled();
        expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
      }
    },
  );

  test("reads a stream the same if its server labels the events JSON", async () => {
    const { source, client } = open(from, to, {}, "application/json");
    for (const text of eventsOf(from)) source.send(text);
    source.end();
    await settled();
    expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
  });

  test.each(["DONE", "[done]", " [Done] "])("ends a stream with the mark %j, too", async (mark) => {
    const pieces = eventsOf(from).map((event) => event.replace("data: [DONE]", `data: ${mark}`));
    const { read, endedBefore } = await answered(from, to, pieces);
    expect(read).toMatchObject(answerOf(from));
    expect(endedBefore).toBe(true);
  });
});

test.each(pairs.filter(([from]) => conversations.some((format) => format === from)))(
  "turns a %s stream in place of a whole answer into that answer for a client of %s",
  (from, to) => {
    const [{ format: engineFormat }, dialect] = [dialects[from], dialects[to]];
    if (!engineFormat || !dialect.format) throw new Error("no format");
    const request = decodedRequest({ ...strictStreams[to].request, stream: false }, to);
    const { deployment, model } = new Source().dispatched;
    const names = { id: "answer_1", created: 7, ownId: false };
    const translation = { from: engineFormat, to: dialect.format, names: new Map(), seal };
    for (const events of [eventsOf(from), eventsOf(from).flatMap((event) => [": ping\n\n", "data:\n\n", event])]) {
      const bytes = ByteSpan.of(events.join(""));
      const serving = { deployment, model };
      const answer =
        from === to
          ? dialect.readAnswer(bytes, request, serving, names)
          : translatedAnswer(bytes, request, serving, names, translation);
      for (const said of ["Grüße aus 東京", "look", "Zürich"]) expect(answer.text).toContain(said);
      expect(answer.usage).toMatchObject({ promptTokens: 30, completionTokens: 19 });
    }
    const fault = ByteSpan.of(`${eventsOf(from)[0]}${strictStreams[from].fault}`);
    const cut = ByteSpan.of(eventsOf(from).slice(0, 3).join(""));
    for (const bytes of [fault, cut]) {
      expect(() => translatedAnswer(bytes, request, { deployment, model }, names, translation)).toThrow();
    }
  },
);

test.each(pairs.filter(([from]) => from === "chat" || from === "completion"))(
  "reports an unnamed error event in a %s stream for a client of %s",
  async (from, to) => {
    for (const fault of [
      { detail: "out of memory" },
      { detail: [{ loc: ["body"], msg: "out of memory" }] },
      { message: "out of memory", code: 500 },
      { status: "error", message: "out of memory" },
      { success: false, message: "out of memory" },
    ]) {
      for (const before of [0, 2]) {
        const { source, client } = open(from, to);
        for (const event of eventsOf(from).slice(0, before)) source.send(event);
        source.send(`data: ${JSON.stringify(fault)}\n\ndata: [DONE]\n\n`);
        await settled();
        expect([client.ended, source.cancelled]).toEqual([true, true]);
        expect(client.text).toContain("out of memory");
        expect(client.text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
      }
    }
  },
);

describe("a stream with missing or duplicate events", () => {
  test.each(structure)("reads a stream without an event: %s for %s without %s (%d)", async (from, to, name, at) => {
    const { source, client } = open(from, to);
    for (const [place, text] of eventsOf(from).entries()) if (place !== at) source.send(text);
    source.end();
    await settled();
    if (decisive.has(name)) expect(client.text).toContain("closed the connection");
    else expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
  });

  test.each(structure)(
    "reads a stream with a duplicate event: %s for %s with %s twice (%d)",
    async (from, to, _name, at) => {
      const pieces = eventsOf(from).flatMap((text, place) => (place === at ? [text, text] : [text]));
      const { read, endedBefore } = await answered(from, to, pieces);
      expect(read).toMatchObject(answerOf(from));
      expect(endedBefore).toBe(true);
    },
  );
});

describe("a stream whose end never comes", () => {
  test.each(pairs.filter(([from]) => from === "chat" || from === "message" || from === "completion"))(
    "ends a %s stream for a client of %s a second after its finish reason",
    async (from, to) => {
      jest.useFakeTimers();
      try {
        const { source, client } = open(from, to);
        const marks = ["usage", "end", "message_stop"];
        for (const { name, text } of strictStreams[from].events) if (!marks.includes(name)) source.send(text);
        await settled();
        for (let beats = 0; beats < 11; beats++) {
          source.send(": ping\n\n");
          jest.advanceTimersByTime(100);
        }
        await settled();
        expect(readStrictly(to, client.text)).toMatchObject(answerOf(from));
      } finally {
        jest.useRealTimers();
      }
    },
  );
});
