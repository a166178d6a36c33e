// A model server that breaks as each request's plan says: it answers early, late, in crumbs, cut, garbled, too long or never.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { chunk } from "./scripted-upstream.ts";

/** `at`: where in the bytes of the answer, head included, from 0 to 1. */
export type Fault =
  | { kind: "none" }
  | { kind: "cut"; at: number; how: "end" | "reset" }
  | { kind: "garbage"; at: number; bytes: string }
  | { kind: "silence"; at: number }
  /** Before all of the request was read. */
  | { kind: "early" }
  | { kind: "late"; ms: number }
  | { kind: "crumbs"; bytes: number }
  /** The announced length is wrong by so much, more or less; with chunks, that of the last one. */
  | { kind: "length"; by: number }
  /** Another answer behind the answer. */
  | { kind: "tail" }
  /** An event of so many bytes in the middle; of a whole answer, as much text. */
  | { kind: "long"; bytes: number }
  | { kind: "status"; status: number };

export interface FaultPlan {
  stream: boolean;
  framing: "length" | "chunked" | "close";
  /** Words of the answer; each names the plan. */
  words: number;
  /** For the first attempt, and the next; those after them are as they should be. */
  faults: readonly Fault[];
}

export interface Attempt {
  plan: number;
  /** Which upstream was asked, by its name in the path. */
  upstream: string;
  requestId: string;
  /** Set when the other side closed the connection. */
  hungUp: boolean;
}

export interface FaultUpstream {
  /** Base URL of an upstream of that name. */
  url(name: string): string;
  /** Takes a plan; a request whose text contains `markOf` it is answered by it. */
  add(plan: FaultPlan): number;
  attempts: Attempt[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Nobody who asked for it may ever see it. */
export const stolen = "STOLEN-ANSWER";
export const markOf = (plan: number) => `plan<${plan}>`;
/** The text of an answer, by which attempt it was and whose it is. */
export const wordsOf = (plan: number, attempt: number, words: number) =>
  Array.from({ length: words }, (_, word) => `[${plan}/${attempt}/${word}]`);

export async function startFaultUpstream(): Promise<FaultUpstream> {
  const plans: FaultPlan[] = [];
  const attempts: Attempt[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let current: Attempt | undefined;
    let received = "";
    let answered = false;
    const gone = () => {
      sockets.delete(socket);
      if (current) current.hungUp = true;
    };
    for (const event of ["end", "close", "error"]) socket.on(event, gone);
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      const end = received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = received.slice(0, end);
      if (head.startsWith("GET ")) {
        received = received.slice(end + 4);
        socket.write(framed("200 OK", modelList, "length", "application/json"));
        return;
      }
      const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
      const complete = received.length >= end + 4 + length;
      const mark = /plan<(\d+)>/.exec(received);
      if (mark && !answered) {
        const plan = Number(mark[1]);
        const number = attempts.filter((attempt) => attempt.plan === plan).length;
        const fault = plans[plan]?.faults[number] ?? { kind: "none" };
        if (complete || fault.kind === "early") {
          answered = true;
          const [, upstream = ""] = /^POST \/(\w+)\//.exec(head) ?? [];
          const [, requestId = ""] = /^x-request-id: *(\S+)$/im.exec(head) ?? [];
          current = { plan, upstream, requestId, hungUp: false };
          attempts.push(current);
          void answer(socket, plans[plan] as FaultPlan, plan, number, fault);
        }
      }
      if (complete && answered) {
        received = received.slice(end + 4 + length);
        answered = false;
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: (name) => `http://127.0.0.1:${port}/${name}/v1`,
    add: (plan) => plans.push(plan) - 1,
    attempts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const modelList = JSON.stringify({
  object: "list",
  data: [{ id: "upstream-model", object: "model", created: 1_700_000_000, owned_by: "faults" }],
});

async function answer(socket: Socket, plan: FaultPlan, id: number, attempt: number, fault: Fault): Promise<void> {
  if (fault.kind === "late") await Bun.sleep(fault.ms);
  const words = wordsOf(id, attempt, plan.words);
  const filler = fault.kind === "long" ? "x".repeat(fault.bytes) : "";
  let body = plan.stream ? streamOf(words, filler) : wholeOf(words.join("") + filler);
  let status = "200 OK";
  if (fault.kind === "status") {
    status = `${fault.status} Fault`;
    body = JSON.stringify({ error: { message: "planned", type: "x", code: "x" } });
  }
  const isEvents = plan.stream && fault.kind !== "status";
  let bytes = framed(
    status,
    body,
    plan.framing,
    isEvents ? "text/event-stream" : "application/json",
    fault.kind === "length" ? fault.by : 0,
  );
  if (fault.kind === "tail") bytes += framed("200 OK", wholeOf(stolen), "length", "application/json");
  const at = "at" in fault ? Math.floor(fault.at * bytes.length) : bytes.length;
  if (fault.kind === "garbage") bytes = bytes.slice(0, at) + fault.bytes + bytes.slice(at);
  else bytes = bytes.slice(0, at);
  const size = fault.kind === "crumbs" ? fault.bytes : Math.max(1, Math.ceil(bytes.length / 3));
  for (let from = 0; from < bytes.length && !socket.destroyed; from += size) {
    await written(socket, bytes.slice(from, from + size));
  }
  if (socket.destroyed || fault.kind === "silence") return;
  if (fault.kind === "cut" && fault.how === "reset") socket.resetAndDestroy();
  else if (fault.kind === "cut" || plan.framing === "close") socket.end();
}

function written(socket: Socket, bytes: string): Promise<void> {
  return new Promise((resolve) => {
    socket.write(bytes, "latin1", () => setImmediate(resolve));
  });
}

function streamOf(words: readonly string[], filler: string): string {
  const events = words.map((word) => chunk({ content: word }));
  const usage = { prompt_tokens: 7, completion_tokens: words.length, total_tokens: 7 + words.length };
  if (filler !== "") events.splice(Math.floor(words.length / 2), 0, chunk({ content: filler }));
  return `${events.join("")}${chunk({}, "stop", { usage })}data: [DONE]\n\n`;
}

function wholeOf(content: string): string {
  return JSON.stringify({
    id: "chatcmpl-fault",
    object: "chat.completion",
    created: 1_700_000_001,
    model: "upstream-model",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  });
}

function framed(status: string, body: string, framing: FaultPlan["framing"], type: string, wrongBy = 0): string {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\n`;
  const length = Math.max(0, body.length + wrongBy);
  if (framing === "length") return `${head}Content-Length: ${length}\r\n\r\n${body}`;
  if (framing === "close") return `${head}Connection: close\r\n\r\n${body}`;
  const half = Math.floor(body.length / 2);
  const chunks = [body.slice(0, half), body.slice(half)].filter((part) => part !== "");
  const last = chunks.length - 1;
  const parts = chunks.map((part, n) => `${(part.length + (n === last ? wrongBy : 0)).toString(16)}\r\n${part}\r\n`);
  return `${head}Transfer-Encoding: chunked\r\n\r\n${parts.join("")}0\r\n\r\n`;
}
