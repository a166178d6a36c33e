// What is copied from a page must run as it is and say exactly what was meant, whatever text is in it.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SnippetRequest, shellWord, snippetsOf } from "../../web/parts/secrets/snippet-text.ts";

const root = join(import.meta.dir, "..", "..");
const hostile = [
  "plain",
  `it's "quoted" and \\ back\\n`,
  "two\nlines\n\tand a tab",
  "$(touch /tmp/x) `id` $HOME %s %d !! ; | & > < # ~ *",
  "Grüße, 你好, 😀, \u2028 and \u2029, a\u0301",
  "-n --help",
  "'; rm -rf / #",
  "\u001b[31mred\u0007 \u007f \u0085 %s '\\033'",
  "'''\"\"\"\\",
  "{\"json\": 'inside'}",
];

const received: { body: Record<string, unknown>; authorization: string | null }[] = [];
let server: Bun.Server<undefined>;
let directory = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-snippets-"));
  // So that the code in it finds the packages.
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const body = (await request.json()) as Record<string, unknown>;
      received.push({ body, authorization: request.headers.get("authorization") });
      const choice = { index: 0, finish_reason: "stop" };
      const reported = { id: "chatcmpl-1", created: 1, model: "m" };
      if (!body["stream"]) {
        const message = { role: "assistant", content: "Hello." };
        return Response.json({ ...reported, object: "chat.completion", choices: [{ ...choice, message }] });
      }
      const chunk = {
        ...reported,
        object: "chat.completion.chunk",
        choices: [{ ...choice, delta: { content: "Hello." } }],
      };
      const events = `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`;
      return new Response(events, { headers: { "content-type": "text/event-stream" } });
    },
  });
});
afterAll(() => {
  server.stop(true);
  rmSync(directory, { recursive: true });
});
beforeEach(() => void received.splice(0));

const requestOf = (over: Partial<SnippetRequest> = {}): SnippetRequest => ({
  baseUrl: `http://127.0.0.1:${server.port}/v1`,
  model: "it's/a-model",
  messages: [
    { role: "system", content: hostile.join(" | ") },
    ...hostile.map((content) => ({ role: "user", content })),
  ],
  parameters: { temperature: 0.5, stop: ["'", '"', "\n"], seed: undefined, top_k: 40, logprobs: false, user: null },
  ...over,
});

const bodyOf = ({ model, messages, stream }: SnippetRequest) => ({
  ...{ model, messages, temperature: 0.5, stop: ["'", '"', "\n"], top_k: 40, logprobs: false, user: null },
  ...(stream ? { stream } : {}),
});

const codeOf = (name: string, request: SnippetRequest) =>
  snippetsOf(request).find((snippet) => snippet.name === name)?.code ?? "";

async function run(command: string[], env: Record<string, string> = {}): Promise<string> {
  const started = Bun.spawn(command, {
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "", OPENAI_API_KEY: "sk_from_environment", ...env },
    stderr: "pipe",
    stdin: "ignore",
  });
  const [out, err, code] = await Promise.all([
    new Response(started.stdout).text(),
    new Response(started.stderr).text(),
    started.exited,
  ]);
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${err}`);
  return out;
}

test("quotes any text as one shell word without changing it", async () => {
  for (const text of [...hostile, "", " ", "'", "a'b'c"]) {
    expect(await run(["sh", "-c", `printf '%s|' ${shellWord(text)}`])).toBe(`${text}|`);
  }
});

test("strips control characters that a terminal would act on from code to paste", () => {
  for (const { code } of snippetsOf(requestOf())) expect(code).not.toMatch(/[^\P{Cc}\n\t]/u);
});

test.each([false, true])("sends the intended request from the curl command, streaming %p", async (stream) => {
  const request = requestOf({ stream });
  expect(await run(["sh", "-c", codeOf("curl", request)])).toContain("Hello.");
  expect(received).toEqual([{ body: bodyOf(request), authorization: "Bearer sk_from_environment" }]);
});

test.each([false, true])("sends the intended request from the TypeScript program, streaming %p", async (stream) => {
  const request = requestOf({ stream });
  const file = join(directory, `snippet-${stream}.mts`);
  writeFileSync(file, codeOf("TypeScript", request));
  expect((await run([process.execPath, file])).trim()).toBe("Hello.");
  expect(received).toEqual([{ body: bodyOf(request), authorization: "Bearer sk_from_environment" }]);
});

test.skipIf(Bun.which("python3") === null)("writes the intended request in the Python program", async () => {
  // Stands for the package, which is none of this repository's: prints what it was called with.
  const fake = `import json
class OpenAI:
    def __init__(self, **client):
        self.chat = self.completions = self
        self.client = client
    def create(self, extra_body={}, **body):
        print(json.dumps([self.client, {**body, **extra_body}]))
        raise SystemExit
`;
  writeFileSync(join(directory, "openai.py"), fake);
  for (const stream of [false, true]) {
    const request = requestOf({ stream });
    const file = join(directory, "snippet.py");
    writeFileSync(file, codeOf("Python", request));
    const reported = JSON.parse(await run(["python3", file], { PYTHONPATH: directory })) as unknown;
    expect(reported).toEqual([{ base_url: request.baseUrl, api_key: "sk_from_environment" }, bodyOf(request)]);
  }
});

test.each(hostile)("sends exactly %j from the command line example", async (text) => {
  const messages = [
    { role: "system", content: text },
    { role: "user", content: text },
  ];
  const parameters = { temperature: 0.5, max_tokens: 9 };
  const code = codeOf("Command line", requestOf({ messages, parameters, stream: false }));
  const headrace = `headrace() { ${shellWord(process.execPath)} ${shellWord(join(root, "src", "main.ts"))} "$@"; }\n`;
  expect((await run(["sh", "-c", headrace + code])).trim()).toContain("Hello.");
  expect(received[0]?.body).toEqual({
    model: "it's/a-model",
    messages,
    temperature: 0.5,
    max_tokens: 9,
  });
});

test("names the settings that the command line example omits", () => {
  const code = codeOf("Command line", requestOf());
  expect(code.split("\n")[0]).toBe(
    "# Left out, because the command has no option for it: earlier messages, stop, top_k, logprobs, user.",
  );
});

test("writes a given key into the code, which then reads no environment variable", async () => {
  const request = requestOf({ apiKey: "sk_dev_hr_'given" });
  await run(["sh", "-c", codeOf("curl", request)]);
  expect(received[0]?.authorization).toBe("Bearer sk_dev_hr_'given");
  expect(codeOf("Python", request)).toContain(`api_key="sk_dev_hr_'given"`);
  expect(codeOf("TypeScript", request)).toContain(`apiKey: "sk_dev_hr_'given"`);
  expect(codeOf("Python", request) + codeOf("TypeScript", request)).not.toContain("env");
});
