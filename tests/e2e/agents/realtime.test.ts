// The realtime clients of OpenAI's SDKs as they are: of Node, which insist on TLS, and of Python; and Python's moderations.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { makeProgramHome, python } from "../../support/agents/agent-program.ts";
import { startHeadrace, type TestServer } from "../../support/headrace.ts";
import { type RealtimeUpstream, startRealtimeUpstream } from "../../support/realtime-upstream.ts";
import { json, type ScriptedUpstream, startUpstream } from "../../support/scripted-upstream.ts";
import { taskAnswers } from "../../support/task-answers.ts";

let speaking: RealtimeUpstream;
let judging: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  speaking = startRealtimeUpstream();
  judging = await startUpstream(({ path, body }, res) => json(res, 200, taskAnswers[path]?.(body)));
  server = await startHeadrace({
    yaml: `upstreams:
  - { name: speaking, url: "${speaking.url}" }
  - { name: judging, url: "${judging.url}" }
models:
  - { id: talker, deployments: [{ upstream: speaking, model: rt-own-name }] }
  - { id: judge, deployments: [{ upstream: judging, model: upstream-model }] }
`,
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await judging[Symbol.asyncDispose]();
  await speaking[Symbol.asyncDispose]();
});

/** What stands before a gateway for TLS, and passes bytes on. */
async function startTls(port: number) {
  const directory = mkdtempSync(join(tmpdir(), "headrace-realtime-tls-"));
  const [key, cert] = [join(directory, "key"), join(directory, "cert")];
  const made = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...[
      "-keyout",
      key,
      "-out",
      cert,
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=DNS:localhost",
    ],
  ]);
  if (!made.success) throw new Error(made.stderr.toString());
  const front = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (secure) => {
    const plain = connect(port, "127.0.0.1");
    secure.pipe(plain).pipe(secure);
    secure.on("error", () => {}).on("close", () => plain.destroy());
    plain.on("error", () => {}).on("close", () => secure.destroy());
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  return {
    port: (front.address() as { port: number }).port,
    [Symbol.dispose]() {
      front.close();
      rmSync(directory, { recursive: true });
    },
  };
}

test("connects the Node SDK's realtime client to a model", async () => {
  using front = await startTls(Number(new URL(server.url).port));
  const client = new OpenAI({ apiKey: server.key, baseURL: `https://localhost:${front.port}/v1` });
  const realtime = new OpenAIRealtimeWS({ model: "talker", options: { rejectUnauthorized: false } }, client);
  const text: string[] = [];
  const done = new Promise<number | undefined>((resolve, reject) => {
    realtime.on("error", reject);
    realtime.on("session.created", () => {
      realtime.send({ type: "session.update", session: { type: "realtime", model: "talker" } });
      realtime.send({ type: "response.create" });
    });
    realtime.on("response.output_text.delta", ({ delta }) => text.push(delta));
    realtime.on("response.done", ({ response }) => resolve(response.usage?.total_tokens));
  });
  expect(await done).toBe(113);
  expect(text.join("")).toBe("word 1 word 2 word 3 ");
  realtime.close();
});

test("serves moderations and a realtime connection to the unmodified Python SDK", async () => {
  await using home = makeProgramHome();
  const script = join(import.meta.dir, "..", "..", "programs", "realtime.py");
  const run = (model: string) =>
    home.run([python, script, `${server.url}/v1`, "talker", model], home.home, { OPENAI_API_KEY: server.key });
  const { code, stdout, stderr } = await run("judge");
  if (code !== 0) throw new Error(`It ended with ${code}:\n${stdout}\n${stderr}`);
  expect(JSON.parse(stdout)).toEqual({ flagged: false, text: "word 1 word 2 word 3 ", total: 113 });
});
