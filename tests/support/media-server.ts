// A model server of sound and images: reads forms as another program would, tells what it did, and remembers what it told.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isLook, json } from "./scripted-upstream.ts";

type Json = Record<string, unknown>;

export interface MediaRequest {
  path: string;
  headers: IncomingMessage["headers"];
  /** Bytes of the body, and their SHA-256. */
  bytes: number;
  digest: string;
  /** The fields, read by the runtime, of a form that is no longer than `readBytes`. */
  form: FormData | undefined;
  body: Json;
  /** Set when the gateway hung up before the answer was complete. */
  abandoned: boolean;
}

export type MediaScript = (request: MediaRequest, response: ServerResponse) => void | Promise<void>;

export interface MediaServer extends AsyncDisposable {
  /** Base URL, ends in `/v1`. */
  url: string;
  requests: MediaRequest[];
  script(script: MediaScript): void;
}

/** Longer bodies are counted, and not kept. */
const readBytes = 8 * 1024 * 1024;
export const ownModel = "engines-own-name";
const tokens = { input_tokens: 50, output_tokens: 1_056, total_tokens: 1_106 };
export const imageUsage = { ...tokens, input_tokens_details: { text_tokens: 10, image_tokens: 40 } };
export const heardUsage = {
  ...{ type: "tokens", input_tokens: 14, output_tokens: 45, total_tokens: 59 },
  input_token_details: { text_tokens: 0, audio_tokens: 14 },
};
export const spokenUsage = { input_tokens: 12, output_tokens: 320, total_tokens: 332 };
export const sound = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31) % 256));

export async function startMediaServer(): Promise<MediaServer> {
  let script: MediaScript = mediaAnswer;
  const requests: MediaRequest[] = [];
  const server = createServer(async (req, res) => {
    res.on("error", () => {});
    if (req.method === "GET") {
      json(res, 200, { object: "list", data: [{ id: ownModel, object: "model" }] });
      return;
    }
    const request = await read(req).catch(() => undefined);
    if (!request) return;
    if (isLook(JSON.stringify(request.body))) {
      json(res, 404, { error: { message: "that is no request" } });
      return;
    }
    requests.push(request);
    res.on("close", () => {
      request.abandoned = !res.writableFinished;
    });
    await script(request, res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (next) => {
      script = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function read(req: IncomingMessage): Promise<MediaRequest> {
  const hash = createHash("sha256");
  let bytes = 0;
  let pieces: Buffer[] = [];
  for await (const piece of req as AsyncIterable<Buffer>) {
    hash.update(piece);
    bytes += piece.length;
    if (bytes <= readBytes) pieces.push(piece);
    else pieces = [];
  }
  const type = req.headers["content-type"] ?? "";
  const all = bytes <= readBytes ? Buffer.concat(pieces) : undefined;
  const isForm = type.startsWith("multipart/");
  const read = all && new Response(new Uint8Array(all), { headers: { "content-type": type } });
  const form = isForm ? await read?.formData() : undefined;
  const body = isForm || !read ? {} : ((await read.json()) as Json);
  return { path: req.url ?? "", headers: req.headers, bytes, digest: hash.digest("hex"), form, body, abandoned: false };
}

/** The boundary by which the form of a request was sent. */
export function boundaryIn({ headers }: Pick<MediaRequest, "headers">): string {
  const [, boundary = ""] =
    /^multipart\/form-data; boundary=(headrace-[\w-]{36})$/.exec(headers["content-type"] ?? "") ?? [];
  return boundary;
}

/** The text of a field of a form, or a member of JSON. */
export function asked({ form, body }: MediaRequest, name: string): unknown {
  return form ? form.get(name) : body[name];
}

export const mediaAnswer: MediaScript = (request, res) => {
  const format = asked(request, "response_format");
  const streams = [true, "true"].includes(asked(request, "stream") as boolean | string);
  switch (request.path) {
    case "/v1/audio/speech":
      if (asked(request, "stream_format") === "sse") events(res, spoken());
      else {
        res.writeHead(200, { "content-type": "audio/mpeg" });
        res.end(sound);
      }
      return;
    case "/v1/audio/transcriptions":
    case "/v1/audio/translations":
      if (streams) events(res, heard());
      else if (format === "text" || format === "srt" || format === "vtt") {
        res.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
        res.end("The mill runs by itself.\n");
      } else if (format === "verbose_json") {
        json(res, 200, {
          task: "transcribe",
          language: "english",
          duration: 8.47,
          text: "The mill runs.",
          segments: [],
        });
      } else json(res, 200, { text: "The mill runs by itself.", usage: heardUsage });
      return;
    case "/v1/images/generations":
    case "/v1/images/edits":
    case "/v1/images/variations": {
      const kind = request.path.endsWith("edits") ? "image_edit" : "image_generation";
      if (streams) events(res, drawn(kind));
      else {
        const data = Array.from({ length: Number(asked(request, "n") ?? 1) }, () => ({ b64_json: "aW1hZ2U=" }));
        json(res, 200, { created: 1_700_000_000, data, usage: imageUsage });
      }
      return;
    }
    default:
      json(res, 404, { error: { message: `no ${request.path}` } });
  }
};

export function events(res: ServerResponse, all: readonly Json[]): void {
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of all) res.write(eventText(event));
  res.end();
}

export function eventText(event: Json): string {
  return `event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function spoken(): Json[] {
  return [
    { type: "speech.audio.delta", audio: "c291" },
    { type: "speech.audio.delta", audio: "bmQ=" },
    { type: "speech.audio.done", usage: spokenUsage },
  ];
}

export function heard(): Json[] {
  const deltas = ["The mill ", "runs by ", "itself."].map((delta) => ({ type: "transcript.text.delta", delta }));
  return [...deltas, { type: "transcript.text.done", text: "The mill runs by itself.", usage: heardUsage }];
}

export function drawn(kind: string): Json[] {
  const image = { b64_json: "aW1hZ2U=", created_at: 1_700_000_000, size: "1024x1024", quality: "high" };
  return [
    { type: `${kind}.partial_image`, partial_image_index: 0, ...image },
    { type: `${kind}.completed`, ...image, usage: imageUsage },
  ];
}

/** A WAV file of so many seconds: 16,000 samples of 16 bits in each, on one channel. */
export function wavOf(seconds: number): Buffer<ArrayBuffer> {
  const [rate, samples] = [32_000, Math.round(seconds * 32_000)];
  const file = Buffer.alloc(44 + samples);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(36 + samples, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(16_000, 24);
  file.writeUInt32LE(rate, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(samples, 40);
  return file;
}
