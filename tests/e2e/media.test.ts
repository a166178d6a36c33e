// Sound and images: forms, bytes and events are governed as chat is, and counted as their servers tell.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import { head, openRaw } from "../hostile/raw-client.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  boundaryIn,
  drawn,
  events,
  eventText,
  heard,
  heardUsage,
  imageUsage,
  type MediaRequest,
  type MediaScript,
  type MediaServer,
  mediaAnswer,
  ownModel,
  sound,
  spokenUsage,
  startMediaServer,
  wavOf,
} from "../support/media-server.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { json } from "../support/scripted-upstream.ts";

type Json = Record<string, unknown>;

/** A text of 26 characters, in 28 bytes. */
const input = "The mill runs by itself. ☃";
const models = `models:
  - id: media
    price: { input: 1000, output: 2000, character: 0.001, second: 0.01, image: 0.5 }
    deployments: [{ upstream: up, model: ${ownModel} }]
  - id: chatter
    capabilities: { speech: false, transcription: false, images: false }
    deployments: [{ upstream: up, model: ${ownModel} }]
limits: { form_memory_bytes: 65536 }
`;

let media: MediaServer;
let server: TestServer;
let client: OpenAI;

beforeAll(async () => {
  media = await startMediaServer();
  server = await startHeadrace({ yaml: `upstreams:\n  - { name: up, url: "${media.url}" }\n${models}` });
  client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
});
beforeEach(() => media.script(mediaAnswer));
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await media[Symbol.asyncDispose]();
});

async function booked(requestId: string | null): Promise<Json> {
  return await until(async () => {
    const response = await server.request(`/v1/requests/${requestId}`);
    return response.status === 200 ? ((await response.json()) as Json) : undefined;
  }, `the request ${requestId} is booked`);
}

async function lastBooked(outcome: string): Promise<Json> {
  const { id } = await until(async () => {
    const listed = (await (await server.request("/v1/requests?limit=1")).json()) as { data: Json[] };
    return listed.data[0]?.["outcome"] === outcome ? listed.data[0] : undefined;
  }, "it is booked");
  return await booked(String(id));
}

/** Files of forms that are left on the disk, open ones included. */
const left = () => readdirSync(join(server.dataDir, "forms"));

interface FormPart {
  name: string;
  value: string | Uint8Array<ArrayBuffer>;
  filename?: string;
}

const boundary = "----headrace-test";

function formBody(parts: readonly FormPart[], last = `--${boundary}--\r\n`): Buffer<ArrayBuffer> {
  const pieces = parts.flatMap(({ name, value, filename }) => {
    const file = filename === undefined ? "" : `; filename="${filename}"\r\nContent-Type: audio/wav`;
    return [`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`, value, "\r\n"];
  });
  return Buffer.concat([...pieces, last].map((piece) => Buffer.from(piece as string)));
}

/** SHA-256 of the form that says the same, as it is written anew with the boundary of what was sent. */
function digestOf(parts: readonly FormPart[], sent: MediaRequest | undefined): string {
  const text = formBody(parts).toString("latin1");
  const written = text.replaceAll(boundary, (sent && boundaryIn(sent)) ?? "");
  return new Bun.CryptoHasher("sha256").update(Buffer.from(written, "latin1")).digest("hex");
}

function send(
  path: string,
  body: BodyInit,
  headers: Record<string, string> = {},
  to: Pick<TestServer, "url" | "key"> = server,
): Promise<Response> {
  return fetch(to.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${to.key}`,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      ...headers,
    },
    body,
  });
}

const file = (seconds = 2): FormPart => ({ name: "file", value: wavOf(seconds), filename: "a.wav" });
const model: FormPart = { name: "model", value: "media" };

describe("speech answers", () => {
  test("passes speech on as bytes with the server's type, and counts characters", async () => {
    const { response, data } = await client.audio.speech
      .create({ model: "media", input, voice: "alloy" })
      .withResponse();
    expect(response.headers.get("content-type")).toBe("audio/mpeg");
    expect(Buffer.from(await data.arrayBuffer()).equals(sound)).toBe(true);
    expect(media.requests.at(-1)?.body).toEqual({ model: ownModel, input, voice: "alloy" });
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ operation: "speech", model: "media", outcome: "completed", stream: false });
    expect(record["usage_details"]).toMatchObject({ characters: 26 });
    expect(record["estimated"]).toBe(true);
    expect(Number(record["cost"])).toBeCloseTo(0.026 + Number(record["prompt_tokens"]) * 0.001, 9);
  });

  test("streams speech before the server has finished, and stops when the client leaves", async () => {
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "audio/mpeg" });
      res.write(sound.subarray(0, 1_000));
    });
    const aborting = new AbortController();
    const response = await server.request("/v1/audio/speech", {
      body: { model: "media", input, voice: "a" },
      signal: aborting.signal,
    });
    const first = await response.body?.getReader().read();
    expect(first?.value?.length).toBe(1_000);
    aborting.abort();
    const record = await lastBooked("cancelled");
    expect(record["usage_details"]).toMatchObject({ characters: 26 });
    await until(() => media.requests.at(-1)?.abandoned, "the server is told");
  });

  test("truncates the connection if speech breaks off", async () => {
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "audio/mpeg", "content-length": "5000" });
      res.write(sound.subarray(0, 1_000), () => res.destroy());
    });
    const response = await server.request("/v1/audio/speech", { body: { model: "media", input, voice: "a" } });
    await expect(response.arrayBuffer()).rejects.toThrow();
    expect(await lastBooked("failed")).toMatchObject({ operation: "speech" });
  });

  test("does not send speech with a type that browsers render, and treats a JSON error as an error", async () => {
    const said = (type: string) => {
      media.script((_, res) => {
        res.writeHead(200, { "content-type": type });
        res.end("<script>alert(1)</script>");
      });
      return server.request("/v1/audio/speech", { body: { model: "media", input, voice: "a" } });
    };
    for (const type of ["text/html", "text/plain;, text/html", "application/problem+xml"]) {
      expect((await said(type)).status).toBe(502);
    }
    for (const type of ["audio/mpeg; a=b, text/html", "audio/mpeg, text/html"]) {
      const page = await said(type);
      expect(page.headers.get("content-type")).toBe("application/octet-stream");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    }
    media.script((_, res) => json(res, 200, { error: { message: "no voice" } }));
    const failed = await server.request("/v1/audio/speech", { body: { model: "media", input, voice: "a" } });
    expect([failed.status, await failed.text()]).toEqual([502, expect.stringContaining("no voice")]);
  });

  test.each(["", "\n", "event: error\ndata: ", '"'])(
    "returns an error without the server's stack trace in place of speech, after %j",
    async (before) => {
      const stack = 'Traceback (most recent call last):\n  db.connect(host="10.2.3.4", password="hunter2")\n{}';
      media.script((_, res) => void res.writeHead(200, { "content-type": "text/plain" }).end(before + stack));
      const failed = await server.request("/v1/audio/speech", { body: { model: "media", input, voice: "a" } });
      const text = await failed.text();
      expect([failed.status, text]).toEqual([502, expect.stringContaining("The model server sent no answer.")]);
      expect(text).not.toMatch(/Traceback|10\.2\.3\.4|hunter2/);
    },
  );

  test.each(["text/html; charset=utf-8", "text/plain", "application/json", "application/xml"])(
    "sends speech as untyped bytes if its server labels it %s",
    async (type) => {
      const ownFormats = [
        Buffer.from("ID3\x04\0\0\0\0\0\x21"),
        wavOf(1),
        Buffer.from("OggS\0\x02"),
        Buffer.alloc(64),
        sound,
      ];
      for (const made of [...ownFormats, Buffer.from([0xff, 0xfb, 0x90, 0x64])]) {
        media.script((_, res) => void res.writeHead(200, { "content-type": type }).end(made));
        const response = await server.request("/v1/audio/speech", { body: { model: "media", input, voice: "a" } });
        expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/octet-stream"]);
        expect(Buffer.from(await response.arrayBuffer()).equals(made)).toBe(true);
      }
    },
  );

  test("streams speech as events on request, with the reported tokens", async () => {
    const response = await server.request("/v1/audio/speech", {
      body: { model: "media", input, voice: "a", stream_format: "sse" },
    });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const text = await response.text();
    expect(text.match(/speech\.audio\.delta"/g)).toHaveLength(2);
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ stream: true, estimated: false, outcome: "completed" });
    expect(record).toMatchObject({ prompt_tokens: spokenUsage.input_tokens, completion_tokens: 320 });
    expect(record["usage_details"]).toMatchObject({ characters: 26 });
  });
});

describe("image answers", () => {
  test("generates images and counts images and tokens", async () => {
    const { data, response } = await client.images.generate({ model: "media", prompt: "A mill", n: 2 }).withResponse();
    expect(data.data).toHaveLength(2);
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ operation: "image", prompt_tokens: 50, completion_tokens: 1_056, estimated: false });
    expect(record["usage_details"]).toMatchObject({ images: 2, input_image_tokens: 40 });
    expect(record["cost"]).toBeCloseTo(0.05 + 2.112 + 1, 9);
  });

  test("returns the refusal of a streamed image by the vendor's moderation as the client's error", async () => {
    const fault = { type: "image_generation_user_error", code: "moderation_blocked", message: "Rejected as unsafe." };
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(`event: error\ndata: ${JSON.stringify({ type: "error", error: fault })}\n\n`);
    });
    const asking = async () => await client.images.generate({ model: "media", prompt: "A mill", stream: true });
    await expect(asking()).rejects.toMatchObject({ status: 400, code: "moderation_blocked" });
  });

  test("streams images as events that the SDK reads", async () => {
    const stream = await client.images.generate({ model: "media", prompt: "A mill", stream: true, partial_images: 1 });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types).toEqual(["image_generation.partial_image", "image_generation.completed"]);
    const record = await lastBooked("completed");
    expect(record).toMatchObject({ stream: true, prompt_tokens: imageUsage.input_tokens, completion_tokens: 1_056 });
    expect(record["usage_details"]).toMatchObject({ images: 1 });
  });

  test("streams an image event longer than 8 MiB", async () => {
    // A key's share of the memory of one of two workers is 19 MB.
    const image = "A".repeat(9 * 1024 * 1024);
    const [part, whole] = drawn("image_generation") as [Json, Json];
    media.script((_, res) => events(res, [part, { ...whole, b64_json: image }]));
    const stream = await client.images.generate({ model: "media", prompt: "A mill", stream: true, partial_images: 1 });
    const lengths: number[] = [];
    for await (const event of stream) lengths.push(event.b64_json.length);
    expect(lengths).toEqual([8, image.length]);
    expect((await lastBooked("completed"))["usage_details"]).toMatchObject({ images: 1 });
  });

  test("charges a client that leaves for images already delivered", async () => {
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(eventText(drawn("image_generation")[0] as Json));
    });
    const stream = await client.images.generate({ model: "media", prompt: "A mill", stream: true });
    for await (const _ of stream) break;
    stream.controller.abort();
    expect((await lastBooked("cancelled"))["usage_details"]).toMatchObject({ images: 1 });
  });

  test("edits images from a form and from JSON, and makes variations", async () => {
    const image = await toFile(Buffer.from("png"), "a.png", { type: "image/png" });
    const other = await toFile(Buffer.from("other"), "b.png", { type: "image/png" });
    const edited = await client.images.edit({ model: "media", prompt: "Snow", image: [image, other], n: 1 });
    expect(edited.data).toHaveLength(1);
    const sent = media.requests.at(-1);
    expect(sent?.form?.get("model")).toBe(ownModel);
    expect(await Promise.all((sent?.form?.getAll("image[]") ?? []).map((one) => (one as File).text()))).toEqual([
      "png",
      "other",
    ]);
    const stream = await client.images.edit({ model: "media", prompt: "Snow", image, stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(-1)).toBe("image_edit.completed");
    const body = { model: "media", prompt: "Snow", images: [{ image_url: "data:image/png;base64,AAAA" }] };
    const asJson = await server.request("/v1/images/edits", { body });
    expect(asJson.status).toBe(200);
    expect(media.requests.at(-1)?.body).toMatchObject({ ...body, model: ownModel });
    await client.images.createVariation({ model: "media", image });
    expect(await lastBooked("completed")).toMatchObject({ operation: "image_variation" });
  });
});

describe("transcription answers", () => {
  test("counts a transcription by reported tokens instead of seconds", async () => {
    const upload = await toFile(wavOf(3), "a.wav", { type: "audio/wav" });
    const { data, response } = await client.audio.transcriptions
      .create({ model: "media", file: upload, language: "en", temperature: 0.2, timestamp_granularities: ["word"] })
      .withResponse();
    expect(data.text).toBe("The mill runs by itself.");
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ operation: "transcription", prompt_tokens: 14, completion_tokens: 45 });
    expect(record["usage_details"]).toEqual({ input_audio_tokens: 14 });
    expect(record["cost"]).toBeCloseTo(0.014 + 0.09, 9);
    const sent = media.requests.at(-1)?.form;
    expect([sent?.get("model"), sent?.get("language"), (sent?.get("file") as File | undefined)?.size]).toEqual([
      ownModel,
      "en",
      wavOf(3).length,
    ]);
  });

  test.each(["text/plain; charset=utf-8", "text/html", "application/x-subrip"])(
    "returns an empty text of type %s for a recording without speech",
    async (type) => {
      media.script((_, response) => void response.writeHead(200, { "content-type": type }).end());
      const { data, response } = await client.audio.transcriptions
        .create({ model: "media", file: await toFile(wavOf(3), "a.wav"), response_format: "text" })
        .withResponse();
      expect([response.status, data]).toEqual([200, ""]);
      const record = await booked(response.headers.get("x-request-id"));
      expect(record).toMatchObject({ outcome: "completed", attempts: 1, completion_tokens: 0 });
    },
  );

  test("counts a transcription by reported seconds", async () => {
    const upload = () => toFile(wavOf(3), "a.wav");
    const verbose = await client.audio.transcriptions
      .create({ model: "media", file: await upload(), response_format: "verbose_json" })
      .withResponse();
    const record = await booked(verbose.response.headers.get("x-request-id"));
    expect(record).toMatchObject({ prompt_tokens: 0, completion_tokens: 0, estimated: false, cost: 0.08 });
    expect(record["usage_details"]).toEqual({ seconds: 8 });
    media.script((_, res) => json(res, 200, { text: "x", usage: { type: "duration", seconds: 9 } }));
    const reported = await client.audio.transcriptions.create({ model: "media", file: await upload() }).withResponse();
    expect((await booked(reported.response.headers.get("x-request-id")))["usage_details"]).toEqual({ seconds: 9 });
  });

  test("counts a transcription by the file's length, as an estimate, if the report is impossible", async () => {
    const audio = new File([wavOf(7.5)], "a.wav");
    for (const reported of [{ duration: 1e308 }, { usage: { type: "duration", seconds: 9e15 } }, { duration: -5 }]) {
      media.script((_, response) => json(response, 200, { text: "The mill.", ...reported }));
      const { data, response } = await client.audio.transcriptions
        .create({ model: "media", file: audio })
        .withResponse();
      expect(data.text).toBe("The mill.");
      expect(await booked(response.headers.get("x-request-id"))).toMatchObject({
        ...{ estimated: true, usage_details: { seconds: 8 } },
      });
    }
  });

  test("counts a transcription by the file's length if the server reports no tokens or too few seconds", async () => {
    const audio = new File([wavOf(90)], "a.wav");
    const reported = [
      { usage: { type: "tokens", input_tokens: 0, output_tokens: 0, total_tokens: 0 } },
      { usage: { type: "tokens", input_tokens: 8, output_tokens: 1, total_tokens: 9 } },
      { usage: { type: "duration", seconds: 0 } },
      { duration: 1 },
    ];
    for (const usage of reported) {
      media.script((_, response) => json(response, 200, { text: "The mill.", ...usage }));
      const { response } = await client.audio.transcriptions.create({ model: "media", file: audio }).withResponse();
      const record = await booked(response.headers.get("x-request-id"));
      expect(record).toMatchObject({ estimated: true, usage_details: { seconds: 90 } });
      expect(record["cost"]).toBeGreaterThanOrEqual(0.9);
      if ("usage" in usage && usage.usage.type === "tokens") {
        expect(record).toMatchObject({ prompt_tokens: 900, capped: true });
      }
    }
  });

  test("counts a transcription by its text if the file claims to be short", async () => {
    const audio = new File([wavOf(1)], "a.wav");
    const text = "word ".repeat(1_600);
    const ways = [
      { response_format: "json", answer: (res: ServerResponse) => json(res, 200, { text }) },
      {
        response_format: "text",
        answer: (res: ServerResponse) => void res.writeHead(200, { "content-type": "text/plain" }).end(text),
      },
    ] as const;
    for (const { response_format, answer } of ways) {
      media.script((_, response) => answer(response));
      const { response } = await client.audio.transcriptions
        .create({ model: "media", file: audio, response_format })
        .withResponse();
      expect(await booked(response.headers.get("x-request-id"))).toMatchObject({
        ...{ estimated: true, usage_details: { seconds: 100 } },
      });
    }
  });

  test("counts a transcription by the file's length, as an estimate, if the server reports nothing", async () => {
    const upload = await toFile(wavOf(3), "a.wav");
    const { data, response } = await client.audio.transcriptions
      .create({ model: "media", file: upload, response_format: "text" })
      .withResponse();
    expect(data as unknown).toBe("The mill runs by itself.\n");
    expect(response.headers.get("content-type")).toContain("text/plain");
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ estimated: true, usage_details: { seconds: 3 } });
  });

  test("ends a transcription stream with its last event, though the server keeps the connection open", async () => {
    const upload = () => toFile(wavOf(1), "a.wav");
    const stream = await client.audio.transcriptions.create({ model: "media", file: await upload(), stream: true });
    const seen: string[] = [];
    for await (const event of stream) seen.push(event.type);
    expect(seen).toEqual([...Array(3).fill("transcript.text.delta"), "transcript.text.done"]);
    expect(await lastBooked("completed")).toMatchObject({ prompt_tokens: heardUsage.input_tokens, estimated: false });
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of heard()) res.write(eventText(event));
    });
    const { data, response } = await client.audio.transcriptions
      .create({ model: "media", file: await upload(), stream: true })
      .withResponse();
    for await (const event of data) seen.push(event.type);
    expect(seen.slice(4)).toEqual([...Array(3).fill("transcript.text.delta"), "transcript.text.done"]);
    const record = await booked(response.headers.get("x-request-id"));
    expect(record).toMatchObject({ outcome: "completed", prompt_tokens: 14, completion_tokens: 45, estimated: false });
  });

  test("sends events of a transcription whose server ignores the request to stream", async () => {
    media.script((_, res) => json(res, 200, { text: "Whole.", usage: heardUsage }));
    const upload = await toFile(wavOf(1), "a.wav");
    const stream = await client.audio.transcriptions.create({ model: "media", file: upload, stream: true });
    const seen: unknown[] = [];
    for await (const event of stream) seen.push(event);
    expect(seen).toEqual([
      { type: "transcript.text.delta", delta: "Whole." },
      { type: "transcript.text.done", text: "Whole.", usage: heardUsage },
    ]);
    expect(await lastBooked("completed")).toMatchObject({ prompt_tokens: 14 });
  });

  test("turns the chunks in which vLLM streams a transcription into the events of OpenAI", async () => {
    const chunk = (more: object) =>
      `data: ${JSON.stringify({ id: "trsc-1", object: "transcription.chunk", ...more })}\n\n`;
    const choice = (content: string, more: object = {}) => chunk({ choices: [{ delta: { content }, ...more }] });
    const usage = { prompt_tokens: 2_542, completion_tokens: 7, total_tokens: 2_549 };
    const parts = [choice(""), choice(" Müh"), choice("le.", { finish_reason: "stop" }), choice(" Zwei.")];
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end([...parts, chunk({ choices: [], usage }), "data: [DONE]\n\n"].join(""));
    });
    const upload = () => toFile(wavOf(1), "a.wav");
    const events = async () => {
      const stream = await client.audio.transcriptions.create({ model: "media", file: await upload(), stream: true });
      return await Array.fromAsync(stream);
    };
    const deltas = [" Müh", "le.", " Zwei."].map((delta) => ({ type: "transcript.text.delta", delta }));
    const tokens = { type: "tokens", input_tokens: 2_542, output_tokens: 7, total_tokens: 2_549 };
    expect((await events()) as unknown[]).toEqual([
      ...deltas,
      { type: "transcript.text.done", text: " Mühle. Zwei.", usage: tokens },
    ]);
    expect(await lastBooked("completed")).toMatchObject({
      prompt_tokens: 2_542,
      completion_tokens: 7,
      estimated: false,
    });
    // A stream without its end mark is not complete.
    media.script((_, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(parts.join(""));
    });
    await expect(events()).rejects.toThrow("closed the connection");
  });

  test("translates a recording", async () => {
    const answer = await client.audio.translations.create({ model: "media", file: await toFile(wavOf(1), "a.wav") });
    expect(answer.text).toBe("The mill runs by itself.");
    expect(await lastBooked("completed")).toMatchObject({ operation: "translation" });
  });
});

describe("multipart forms of recordings", () => {
  test("takes list items whose names have an index, and sends them on", async () => {
    const items = ["word", "segment"].map((value, at) => ({ name: `timestamp_granularities[${at}]`, value }));
    const response = await send("/v1/audio/transcriptions", formBody([model, ...items, file(1)]));
    expect(response.status).toBe(200);
    expect(media.requests.at(-1)?.form?.get("timestamp_granularities[1]")).toBe("segment");
  });

  test.each(["known_speaker_names[]", "known_speaker_names"])(
    "takes four speakers as %s, with a recording of ten seconds each",
    async (name) => {
      const reference = `data:audio/wav;base64,${"A".repeat(640_000)}`;
      const speakers = ["Ann", "Ben", "Cleo", "Dan"].flatMap((speaker) => [
        { name, value: speaker },
        { name: name.replace("names", "references"), value: reference },
      ]);
      const response = await send("/v1/audio/transcriptions", formBody([model, ...speakers, file(1)]));
      expect(response.status).toBe(200);
      expect(media.requests.at(-1)?.form?.getAll(name)).toEqual(["Ann", "Ben", "Cleo", "Dan"]);
    },
  );

  // hardening: F38
  test("rewrites forms with the server's own model id, small and spooled ones", async () => {
    for (const seconds of [1, 20]) {
      for (const parts of [
        [file(seconds), model],
        [model, file(seconds)],
        [{ name: "prompt", value: "é" }, file(seconds), { name: "x[]", value: "1" }, model],
      ]) {
        const response = await send("/v1/audio/transcriptions", formBody(parts));
        expect(response.status).toBe(200);
        const renamed = parts.map((part) => (part === model ? { ...part, value: ownModel } : part));
        const sent = media.requests.at(-1);
        expect(sent?.digest).toBe(digestOf(renamed, sent));
        expect(sent?.headers["content-length"]).toBe(String(sent?.bytes));
      }
    }
    expect(left()).toEqual([]);
  });

  test("resends a whole form to the next server if the first fails during or after it", async () => {
    await using other = await startMediaServer();
    const both = `models: [{ id: media, deployments: [{ upstream: up, model: first }, { upstream: other, model: second }] }]`;
    for (const httpClient of ["own", "fetch"]) {
      const settings = `http_client: ${httpClient}`;
      const servers = [
        `{ name: up, url: "${media.url}", ${settings} }`,
        `{ name: other, url: "${other.url}", ${settings} }`,
      ];
      const yaml = `upstreams: [${servers.join(", ")}]\n${both}\nlimits: { form_memory_bytes: 65536 }\n`;
      await using two = await startHeadrace({ yaml });
      const fails: MediaScript = (_, res) => json(res, 500, { error: { message: "broken" } });
      const breaks: MediaScript = (_, res) => void res.destroy();
      for (const fault of [fails, breaks]) {
        media.script(fault);
        other.script(mediaAnswer);
        for (let i = 0; i < 4; i++) {
          const response = await send("/v1/audio/transcriptions", formBody([file(20), model]), {}, two);
          expect(response.status).toBe(200);
          const sent = other.requests.at(-1);
          expect(sent?.digest).toBe(digestOf([file(20), { ...model, value: "second" }], sent));
        }
      }
      expect(media.requests.at(-1)?.form?.get("model")).toBe("first");
    }
  });

  test("accepts chunked forms and forms with Expect: 100-continue", async () => {
    const body = formBody([file(5), model]);
    const lines = [
      "Host: h",
      `Authorization: Bearer ${server.key}`,
      `Content-Type: multipart/form-data; boundary=${boundary}`,
    ];
    const start = "POST /v1/audio/transcriptions HTTP/1.1";
    const waiting = await openRaw(server.url);
    const leave = once(waiting.socket, "data");
    await waiting.write(head(start, [...lines, "Expect: 100-continue", `Content-Length: ${body.length}`]));
    expect(String(await leave)).toContain("100 Continue");
    await waiting.write(body);
    expect((await waiting.answered(1)).answers[0]?.status).toBe(200);
    const chunked = await openRaw(server.url);
    await chunked.write(head(start, [...lines, "Transfer-Encoding: chunked"]));
    for (let at = 0; at < body.length; at += 10_000) {
      const piece = body.subarray(at, at + 10_000);
      await chunked.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]));
    }
    await chunked.write("0\r\n\r\n");
    expect((await chunked.answered(1)).answers[0]?.status).toBe(200);
    const renamed = [file(5), { ...model, value: ownModel }];
    for (const sent of media.requests.slice(-2)) expect(sent.digest).toBe(digestOf(renamed, sent));
  });

  const wrong: readonly [what: string, body: Buffer<ArrayBuffer>, words: string, contentType?: string][] = [
    ["another boundary", formBody([file(), model]), "boundary", "multipart/form-data; boundary=other"],
    ["no boundary", formBody([file(), model]), "boundary", "multipart/form-data"],
    ["a boundary too long", formBody([model]), "boundary", `multipart/form-data; boundary=${"x".repeat(71)}`],
    ["no model", formBody([file()]), "model"],
    ["two models", formBody([model, file(), { name: "model", value: "chatter" }]), "model"],
    ["a model that is a file", formBody([{ ...model, filename: "m" }, file()]), "model"],
    ["a list of models", formBody([{ name: "model[]", value: "media" }, file()]), "model"],
    ["a model of another case", formBody([{ name: "Model", value: "media" }, file()]), "Model"],
    ["no file", formBody([model]), "file"],
    ["a file that is a text", formBody([model, { name: "file", value: "x" }]), "file"],
    ["an empty file", formBody([model, { name: "file", value: "", filename: "a" }]), "file"],
    ["a part without a name", formBody([model, { ...file(), name: "" }]), "name"],
    ["no number", formBody([model, file(), { name: "temperature", value: "warm" }]), "temperature"],
    ["no truth value", formBody([model, file(), { name: "stream", value: "yes" }]), "stream"],
    ["a field twice", formBody([model, file(), ...Array(2).fill({ name: "prompt", value: "x" })]), "prompt"],
    ["a head that is too long", formBody([model, { ...file(), filename: "x".repeat(9_000) }]), "8192 bytes"],
    ["no end", formBody([model, file()], ""), "last boundary"],
    ["half of its last boundary", formBody([model, file()], `--${boundary}`), "last boundary"],
    ["more behind its end", formBody([model, file()], `--${boundary}--\r\nx`), "behind its last boundary"],
    ["something before its begin", Buffer.from(`x\r\n${formBody([model, file()])}`), "begin"],
    ["nothing in it", Buffer.from(`--${boundary}--\r\n`), "file"],
    ["no UTF-8", formBody([model, file(), { name: "prompt", value: new Uint8Array([0xff]) }]), "UTF-8"],
    [
      "a part in base64",
      Buffer.from(
        formBody([model, file(0.1)])
          .toString("latin1")
          .replace('"model"', '"model"\r\nContent-Transfer-Encoding: base64'),
        "latin1",
      ),
      "Content-Transfer-Encoding",
    ],
  ];

  const rows = wrong.map(([what, body, words, type]) => ({ what, body, words, type }));
  // hardening: F38
  test.each(rows)(
    "refuses a form with $what, says what is wrong, and leaves nothing behind",
    async ({ body, words, type }) => {
      const before = media.requests.length;
      for (const prefix of ["", "long"]) {
        // The same where it is on the disk by the time that the fault is seen.
        const padding = formBody([{ name: "padding", value: Buffer.alloc(200_000, 0x20), filename: "p" }], "");
        const sent = prefix === "" || words === "begin" ? body : Buffer.concat([padding, body]);
        const response = await send(
          "/v1/audio/transcriptions",
          sent,
          type === undefined ? {} : { "content-type": type },
        );
        const { error } = (await response.json()) as { error: Json };
        expect([response.status, error["code"]]).toEqual([400, "invalid_request"]);
        expect(String(error["message"])).toContain(words);
        // A file that was just being opened has a name until that is done.
        await until(() => left().length === 0, "nothing is left");
      }
      expect(media.requests.length).toBe(before);
    },
  );

  // hardening: F38
  test("refuses a form cut at any position and serves the next one", async () => {
    const body = formBody([{ name: "prompt", value: "x" }, file(0.01), model]);
    for (let end = 0; end < body.length - 4; end += 7) {
      const response = await send("/v1/audio/transcriptions", body.subarray(0, end));
      expect([end, response.status]).toEqual([end, 400]);
      await response.text();
    }
    expect((await send("/v1/audio/transcriptions", body)).status).toBe(200);
    expect(left()).toEqual([]);
  });

  test("refuses forms of another type, compressed forms and too large forms", async () => {
    const asJson = await server.request("/v1/audio/transcriptions", { body: { model: "media" } });
    expect(asJson.status).toBe(415);
    const packed = await send("/v1/audio/transcriptions", formBody([model, file()]), { "content-encoding": "gzip" });
    expect(packed.status).toBe(400);
    expect(await packed.text()).toContain("Content-Encoding");
  });

  test("refuses a form with a field that controls a model server", async () => {
    for (const name of ["lora_path", "Kv_Transfer_Params", "chat_template[a]"]) {
      const response = await send("/v1/audio/transcriptions", formBody([file(), model, { name, value: "x" }]));
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as { error: Json };
      expect(String(error["message"])).toContain("limits.refused_members");
    }
  });

  test("refuses a form for a model without that task before any call", async () => {
    const before = media.requests.length;
    const response = await send("/v1/audio/transcriptions", formBody([file(), { name: "model", value: "chatter" }]));
    const { error } = (await response.json()) as { error: Json };
    expect([response.status, error["param"]]).toEqual([400, "model"]);
    expect(String(error["message"])).toContain("transcriptions");
    expect(media.requests.length).toBe(before);
  });
});

test("applies a spend quota to seconds, characters and images before they are used", async () => {
  const made = await server.request("/v1/keys", { body: { name: "few", monthly_spend: 0.05 } });
  const { key } = (await made.json()) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  const image = await server.request("/v1/images/generations", { body: { model: "media", prompt: "x" }, headers });
  const heardLong = await send("/v1/audio/transcriptions", formBody([model, file(60)]), headers);
  const speech = { model: "media", voice: "a", input: "x".repeat(100) };
  const spokenLong = await server.request("/v1/audio/speech", { body: speech, headers });
  expect([image.status, heardLong.status, spokenLong.status]).toEqual([403, 403, 403]);
});

test("serves speech and images from a node, whole and as events, and keeps forms from it without marking it unhealthy", async () => {
  await using gateway = await startGateway();
  const upstreams = `upstreams: [{ name: up, url: "${media.url}" }]\n`;
  await using _ = await joinNode(gateway, { yaml: upstreams, models: [ownModel] });
  const upload = await send("/v1/audio/transcriptions", formBody([file(), { ...model, value: ownModel }]), {}, gateway);
  expect(upload.status).toBe(400);
  expect(await upload.text()).toContain("forms with files are not sent to nodes");
  expect(JSON.stringify((await gateway.admin("GET", "/upstreams")).body.data)).toContain('"state":"ok"');
  const speech = await gateway.request("/v1/audio/speech", { body: { model: ownModel, input, voice: "alloy" } });
  expect([speech.status, speech.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
  expect(Buffer.from(await speech.arrayBuffer()).equals(sound)).toBe(true);
  const body = { model: ownModel, prompt: "A mill", stream: true };
  const images = await gateway.request("/v1/images/generations", { body });
  expect(await images.text()).toContain("event: image_generation.completed");
});
