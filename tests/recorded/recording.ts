// Sends every recorded request of a format to a real gateway and keeps what its client and its model server see, blanked.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import type { ScriptedUpstream } from "../support/scripted-upstream.ts";
import { blanked } from "./blank.ts";
import { isCountAside, startModelServer } from "./model-server.ts";
import { Models } from "./models.ts";
import { chatRequests } from "./requests/chat.ts";
import { completionRequests } from "./requests/completion.ts";
import { embeddingRequests } from "./requests/embedding.ts";
import { messageRequests } from "./requests/message.ts";
import { otherRequests } from "./requests/others.ts";
import type { Call, RecordedRequest } from "./requests/request.ts";
import { responseRequests } from "./requests/response.ts";
import type { Json } from "./written-replies.ts";

const requestsOf = {
  chat: chatRequests,
  completion: completionRequests,
  embedding: embeddingRequests,
  response: responseRequests,
  message: messageRequests,
  other: otherRequests,
} as const;

export type FormatName = keyof typeof requestsOf;
export const formatNames = Object.keys(requestsOf) as FormatName[];

export interface Recording {
  /** Number and name: `017 stream tools -> messages call`. */
  name: string;
  /** Status of the last answer. */
  status: number;
  /** Each request of the client with its answer. */
  answers: string;
  /** Each request that reached the model server; "" if none did. */
  asked: string;
}

/** Sends the requests one after the other, so that each request at the model server belongs to the current one. */
export async function record(format: FormatName): Promise<Recording[]> {
  const models = new Models();
  const requests = requestsOf[format](models);
  await using upstream = await startModelServer();
  await using server = await startHeadrace({ yaml: models.yaml(upstream.url) });
  const recordings: Recording[] = [];
  for (const [index, request] of requests.entries()) {
    const name = `${String(index + 1).padStart(3, "0")} ${request.name.replaceAll(/\s+/g, " ")}`;
    recordings.push({ name, ...(await recordOne(request, server, upstream)) });
  }
  return recordings;
}

async function recordOne(request: RecordedRequest, server: TestServer, upstream: ScriptedUpstream) {
  upstream.requests.length = 0;
  const earlier: Json[] = [];
  const answers: string[] = [];
  let status = 0;
  for (const step of request.steps) {
    const call = typeof step === "function" ? step(earlier) : step;
    const answer = await send(call, server);
    status = answer.status;
    const text = await answer.text();
    const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`).sort();
    answers.push(`${shownCall(call)}\n\n${status}\n${headers.join("\n")}\n\n${text}`);
    earlier.push({ session: answer.headers.get("mcp-session-id"), ...jsonOf(text) });
  }
  const made = upstream.requests.filter((one) => !isCountAside(one));
  const asked = made.map(({ path, headers, text }) => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
    return `POST ${path}\n${lines.sort().join("\n")}\n\n${text}`;
  });
  // Ids of both sides are numbered together, so that an id that the gateway passes on keeps its number.
  const border = "\n\n==== The model server is asked ====\n\n";
  const [answered = "", sent = ""] = blanked(answers.join("\n\n----\n\n") + border + asked.join("\n\n----\n\n")).split(
    border,
  );
  return { status, answers: answered, asked: sent };
}

function send({ method, path, body, headers, key }: Call, server: TestServer): Promise<Response> {
  const sent = typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
  return fetch(server.url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    redirect: "manual",
    headers: {
      ...{ "accept-encoding": "identity", "user-agent": "recorder" },
      ...(key === null ? {} : { authorization: `Bearer ${key ?? server.key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: sent }),
  });
}

function shownCall({ method, path, body, headers = {} }: Call): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`);
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  return `${method ?? (body === undefined ? "GET" : "POST")} ${path}\n${lines.join("")}\n${text.slice(0, 8_192)}`;
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}

const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12);

/** The line of a committed file: status, SHA-256 prefixes of the answers and of the upstream requests, name. */
export function lineOf({ name, status, answers, asked }: Recording): string {
  return `${status} ${hashOf(answers)} ${asked === "" ? "-".padEnd(12) : hashOf(asked)} ${name}`;
}

const fileOf = (format: FormatName) => join(import.meta.dir, `${format}.txt`);

export function readLines(format: FormatName): string[] {
  return readFileSync(fileOf(format), "utf8").trimEnd().split("\n");
}

export function writeLines(format: FormatName, recordings: readonly Recording[]): void {
  writeFileSync(fileOf(format), `${recordings.map(lineOf).join("\n")}\n`);
}

/** The whole recording, for people to read and compare. */
export function shown(format: FormatName, { name, answers, asked }: Recording): string {
  const server = asked === "" ? "The model server is not asked." : `The model server is asked:\n\n${asked}`;
  return `==== ${format} ${name}\n\n${answers}\n\n${server}\n`;
}
