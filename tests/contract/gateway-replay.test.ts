// Recorded streams sent by a real socket through a whole gateway, cut at sampled bytes: the client's bytes never change.
import { expect, test } from "bun:test";
import { rawYaml, startRawUpstream, streamHead } from "../hostile/raw-upstream.ts";
import { startHeadrace } from "../support/headrace.ts";
import { withoutVolatileParts } from "./golden.ts";
import { byteByByte, recordings, replay } from "./replay.ts";

/** Cuts per recording; the relay itself is cut at every byte in sse-replay.test.ts. */
const samples = 6;

test("relays every recording with the same bytes, wherever the network splits it", async () => {
  await using upstream = await startRawUpstream();
  await using server = await startHeadrace({ yaml: rawYaml(upstream) });

  const ask = async (bytes: Uint8Array, position: number, path: string, includeUsage: boolean) => {
    upstream.script(async (socket) => {
      socket.write(streamHead);
      socket.write(bytes.subarray(0, position));
      // A pause long enough that the two writes are two reads at the other end.
      await Bun.sleep(3);
      socket.end(bytes.subarray(position));
    });
    const body = {
      model: "upstream-model",
      stream: true,
      ...(path.endsWith("chat/completions")
        ? { messages: [{ role: "user", content: "Hello there" }] }
        : { prompt: "Hello there" }),
      ...(includeUsage ? { stream_options: { include_usage: true } } : {}),
    };
    const response = await server.request(path, { body });
    const text = withoutVolatileParts(await response.text());
    if (response.status === 200) return text;
    // A stream that brought no event was not begun: its client gets the error alone.
    expect(response.status).toBe(502);
    return `data: ${text}\n\n`;
  };

  for (const { name, bytes, operation } of recordings) {
    const path = operation === "chat" ? "/v1/chat/completions" : "/v1/completions";
    const { text } = await replay(byteByByte(bytes), operation, true);
    // The relay was told an id and a time; the gateway makes its own.
    const expected = text
      .replace(/"(?:chatcmpl)-req_given"/g, operation === "chat" ? '"chatcmpl-<id>"' : '"cmpl-<id>"')
      .replaceAll("1800000000", "<now>");
    for (let i = 0; i < samples; i++) {
      const position = Math.floor((bytes.length * i) / samples);
      const seen = await ask(bytes, position, path, true);
      if (seen !== expected) throw new Error(`${name} cut at byte ${position}:\n${seen}\ninstead of:\n${expected}`);
    }
  }
});
