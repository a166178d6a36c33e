// A model server for tests: it loads for a stated time, has a stated memory, answers slowly, and misbehaves as it is told.

import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    model: { type: "string", default: "model" },
    /** File to which each start, end and answer adds a line, to be counted over all processes. */
    diary: { type: "string" },
    "load-ms": { type: "string", default: "0" },
    "answer-ms": { type: "string", default: "0" },
    /** Bytes of RAM that it really takes. */
    fill: { type: "string", default: "0" },
    /** Exits with this code in place of getting ready. */
    fail: { type: "string" },
    /** Goes on when it is asked to end. */
    stubborn: { type: "boolean", default: false },
    /** Starts a child in a session of its own, which would outlive it. */
    brood: { type: "boolean", default: false },
    /** It has no `/health`, as servers of another kind. */
    bare: { type: "boolean", default: false },
    /** Falling asleep takes so long. */
    "sleep-ms": { type: "string", default: "0" },
    /** Only so many starts fail, of all that the diary tells of. */
    "fail-times": { type: "string", default: "0" },
  },
});

const startedMs = performance.now();
const filled = Buffer.alloc(Number(values.fill), 1);
let asleep = false;

function tell(what: string): void {
  if (values.diary)
    appendFileSync(
      values.diary,
      `${what} ${values.model} ${process.pid} ${performance.timeOrigin + performance.now()}\n`,
    );
}

tell("started");
console.log(`loading ${values.model}, with ${filled.length} bytes and HF_TOKEN=${Bun.env["HF_TOKEN"] ?? "none"}`);
console.error(`variables: ${Object.keys(Bun.env).sort().join(" ")}`);
process.on("exit", () => tell("ended"));
process.on("SIGTERM", () => {
  if (!values.stubborn) process.exit(0);
});
if (values.brood) spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
if (values.fail !== undefined) {
  console.error("no such layer: blk.0");
  process.exit(Number(values.fail));
}

if (startsSoFar() <= Number(values["fail-times"])) process.exit(1);

const isLoaded = () => performance.now() - startedMs >= Number(values["load-ms"]);

function startsSoFar(): number {
  if (!values.diary) return 1;
  return readFileSync(values.diary, "utf8")
    .split("\n")
    .filter((line) => line.startsWith(`started ${values.model} `)).length;
}

async function answer(request: Request): Promise<Response> {
  const body = (await request.json()) as { model: string; stream?: boolean };
  if (asleep) return Response.json({ error: { message: "asleep" } }, { status: 500 });
  tell(filled.length >= 0 ? "began" : "");
  await Bun.sleep(Number(values["answer-ms"]));
  tell("answered");
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  const head = { id: "chatcmpl-1", created: 1, model: body.model };
  if (!body.stream) {
    const message = { role: "assistant", content: `${values.model} ${process.pid}` };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    return Response.json({ ...head, object: "chat.completion", choices, usage });
  }
  const choices = [{ index: 0, delta: { role: "assistant", content: `${values.model}` }, finish_reason: "stop" }];
  const event = { ...head, object: "chat.completion.chunk", choices, usage };
  return new Response(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
}

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(values.port),
  idleTimeout: 0,
  routes: {
    "/health": () => new Response("", { status: values.bare ? 404 : isLoaded() ? 200 : 503 }),
    "/v1/models": () =>
      isLoaded()
        ? Response.json({ object: "list", data: [{ id: values.model, object: "model", max_model_len: 4096 }] })
        : new Response("", { status: 503 }),
    "/v1/chat/completions": { POST: answer },
    "/sleep": {
      POST: async () => {
        await Bun.sleep(Number(values["sleep-ms"]));
        asleep = true;
        tell("slept");
        return new Response();
      },
    },
    "/wake_up": {
      POST: () => {
        asleep = false;
        tell("woke");
        return new Response();
      },
    },
    "/is_sleeping": () => Response.json({ is_sleeping: asleep }),
    "/die": ({ url }) => {
      const signal = new URL(url).searchParams.get("by");
      if (signal === null) process.exit(3);
      process.kill(process.pid, signal);
      return new Response();
    },
  },
  fetch: () => new Response("", { status: 404 }),
});
