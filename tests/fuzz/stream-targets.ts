// Streams of model servers on their way to clients of each format: cuts and heartbeats change nothing.
import { dialects } from "../../src/requests/dialects/dialects.ts";
import { decodedRequest } from "../support/decoded-request.ts";
import { Source, settled, start } from "../support/relay.ts";
import { type StreamFormat, strictStreams } from "../support/strict-streams.ts";
import type { Target } from "./targets.ts";

const conversations: readonly StreamFormat[] = ["chat", "response", "message"];
const formats: readonly StreamFormat[] = [...conversations, "completion", "transcription", "image"];
const seal = { seal: (text: string) => text, open: () => undefined };
/** What reads the events of each format. */
const readersOf: Readonly<Record<StreamFormat, readonly string[]>> = {
  chat: [
    "src/requests/dialects/openai/chunks.ts",
    "src/requests/dialects/chat/reply-reader.ts",
    "src/requests/dialects/chat/reply-calls.ts",
  ],
  completion: ["src/requests/dialects/openai/chunks.ts"],
  response: ["src/requests/dialects/response/strict-response.ts", "src/requests/dialects/response/reply-reader.ts"],
  message: ["src/requests/dialects/message/strict-message.ts", "src/requests/dialects/message/reply-reader.ts"],
  transcription: ["src/requests/dialects/task/task-stream.ts"],
  image: ["src/requests/dialects/task/task-stream.ts"],
};
/** What servers send between two events to show that they are alive. */
const heartbeats = [
  ...[": ping\n\n", ":\n", "\n", "data:\n\n", 'data: ""\n\n', 'event: ping\ndata: ""\n\n', "event: ping\n\n"],
  ...["data: {}\n\n", "event: keepalive\ndata: 17\n\n", "id: 7\n\n", "retry: 5\n\n", "data: ping\n\n"],
];
/** Ids of calls are made anew each time. */
const ownIds = /[0-9a-f]{32}/g;

async function answered(from: StreamFormat, to: StreamFormat, pieces: readonly Buffer[]): Promise<unknown> {
  const source = new Source();
  const [{ format: engineFormat }, { format, errorEvent }] = [dialects[from], dialects[to]];
  const translation =
    from === to || !engineFormat || !format
      ? undefined
      : { from: engineFormat, to: format, names: new Map(), seal, errorEvent };
  const request = decodedRequest({ stream: true, ...strictStreams[to].request }, to);
  const { client, ends } = start({ ...source.dispatched, translation }, { request });
  for (const piece of pieces) source.send(piece);
  source.end();
  await settled();
  if (!client.ended || ends.length !== 1) throw new Error(`The stream for ${to} did not end once.`);
  return client.text.replace(ownIds, "id");
}

function answers(from: StreamFormat, pieces: readonly Buffer[]): Promise<unknown[]> {
  const to = conversations.includes(from) ? conversations : [from];
  return Promise.all(to.map((format) => answered(from, format, pieces)));
}

/** With heartbeats behind its events, whose ends are known where no CR may end a line. */
function beaten(bytes: Buffer): Buffer | undefined {
  const text = bytes.toString("latin1");
  if (text.includes("\r")) return undefined;
  let step = bytes.length;
  const behind = text.replaceAll("\n\n", () => {
    step = (step * 31 + 7) % 997;
    return `\n\n${heartbeats[step % heartbeats.length]}`;
  });
  return Buffer.from(behind, "latin1");
}

async function read(from: StreamFormat, pieces: readonly Buffer[]): Promise<unknown> {
  const bytes = Buffer.concat(pieces);
  const result = await answers(from, pieces);
  const other = beaten(bytes);
  const withBeats = other && (await answers(from, [other]));
  if (withBeats && JSON.stringify(withBeats) !== JSON.stringify(result)) {
    throw new Error(`With heartbeats: ${JSON.stringify(withBeats)} instead of ${JSON.stringify(result)}`);
  }
  return result;
}

function seedsOf(from: StreamFormat): string[] {
  const { events, fault } = strictStreams[from];
  const texts = events.map(({ text }) => text);
  return [
    texts.join(""),
    texts.slice(0, 4).join(""),
    `${texts.slice(0, 2).join("")}${fault}`,
    texts.filter((_, at) => at % 3 !== 1).join(""),
    texts.flatMap((text) => [text, text]).join(""),
  ].map((text) => Buffer.from(text).toString("latin1"));
}

export const streamTargets: readonly Target[] = formats.map((from) => ({
  name: `streams of ${from}`,
  files: [
    "src/inference/answer/relay.ts",
    "src/base/text/sse.ts",
    "src/requests/dialects/keep-alive.ts",
    ...readersOf[from],
  ],
  seeds: seedsOf(from),
  read: (pieces) => read(from, pieces),
}));
