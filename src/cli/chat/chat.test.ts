// Tests `headrace chat` with a server whose answers a script determines.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import type { Typed } from "../terminal/line-editor.ts";

let api: ApiServer;
/** The answers to POST /chat/completions, in order. The last one is repeated. */
let answers: (() => Response)[];
let models: Record<string, unknown>[];

const chunk = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const usage = { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 };

function stream(events: readonly unknown[], more: { open?: boolean; done?: boolean } = {}): Response {
  const { open = false, done = true } = more;
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + (done ? "data: [DONE]\n\n" : "");
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(`: keep-alive\n\n${text}`));
      if (!open) controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function says(...pieces: string[]): () => Response {
  const last = [chunk({}, "stop"), { choices: [], usage }];
  return () =>
    stream([chunk({ role: "assistant", content: "" }), ...pieces.map((content) => chunk({ content })), ...last]);
}

beforeEach(() => {
  api = startApiServer();
  answers = [says("The Rhône", ", the Elbe.")];
  models = [{ id: "qwen", capabilities: { chat: true } }];
  let asked = 0;
  api.answer = (_method, path) => {
    if (path === "/models") return Response.json({ object: "list", data: models });
    if (path !== "/chat/completions") return undefined;
    const answer = answers[Math.min(asked, answers.length - 1)];
    asked += 1;
    return answer?.();
  };
});

afterEach(() => api.stop());

function chat(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: api.baseUrl, HEADRACE_API_KEY: api.key, NO_COLOR: "1", ...surroundings.env };
  return runCommand(["chat", "--data-dir", "/nowhere", ...args], { ...surroundings, env });
}

// biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
const sent = (): any[] => api.seen.filter(({ path }) => path === "/chat/completions").map(({ body }) => body);

const line = (text: string): Typed => ({ kind: "line", text });
const talk = (lines: readonly (string | Typed)[], surroundings: CommandSurroundings = {}, args: string[] = []) =>
  chat(args, {
    isTTY: true,
    typed: lines.map((one) => (typeof one === "string" ? line(one) : one)),
    ...surroundings,
  });

describe("headrace chat with one prompt", () => {
  test("prints an answer unchanged, with tokens and speed on standard error", async () => {
    const { code, stdout, stderr } = await chat(["Name", "two rivers."]);
    expect([code, stdout]).toEqual([0, "The Rhône, the Elbe.\n"]);
    expect(stderr).toMatch(/^12 tokens in, 3 out; first token after \d\.\d\d s(; \d+\.\d tokens\/s)?\n$/);
    expect(sent()).toEqual([
      {
        model: "qwen",
        messages: [{ role: "user", content: "Name two rivers." }],
        stream: true,
        stream_options: { include_usage: true },
      },
    ]);
  });

  test("sends the options of the command with the prompt", async () => {
    const options = ["--model", "other", "--system", "Be brief.", "--temperature", "0", "--max-tokens", "9", "--store"];
    await chat([...options, "Hi"]);
    expect(sent()[0]).toMatchObject({
      model: "other",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hi" },
      ],
      temperature: 0,
      max_tokens: 9,
      store: true,
    });
    expect(api.seen.map(({ path }) => path)).toEqual(["/chat/completions"]);
  });

  test("reads the prompt from standard input without a terminal or for -", async () => {
    await chat([], { stdin: "From a file.\n" });
    await chat(["Sum up:", "-"], { stdin: "long\ntext\n" });
    expect(sent().map(({ messages }) => messages[0].content)).toEqual(["From a file.", "Sum up:\n\nlong\ntext"]);
  });

  test("escapes terminal commands in an answer, and keeps line ends, tabs and joiners", async () => {
    answers = [says("a\x1b]0;own", "ed\x07b\r\n\tc\u202ed\u009b2J 👩\u200d🔬")];
    expect((await chat(["Hi"])).stdout).toBe("a]0;ownedb\n\tcd2J 👩\u200d🔬\n");
  });

  test("prints an answer in one piece with --no-stream", async () => {
    const message = { role: "assistant", content: "Whole." };
    answers = [() => Response.json({ choices: [{ message, finish_reason: "length" }], usage })];
    const { stdout, stderr } = await chat(["Hi", "--no-stream"]);
    expect(stdout).toBe("Whole.\n");
    expect(stderr).toContain("Cut off: the limit of tokens is reached");
    expect(stderr).toContain("12 tokens in, 3 out");
    expect(sent()[0]).not.toHaveProperty("stream");
  });

  test("prints the API's completion with --json", async () => {
    const completion = { id: "chatcmpl-1", choices: [{ message: { content: "\x1b[2J" } }], later: "kept" };
    answers = [() => Response.json(completion)];
    const { stdout, stderr } = await chat(["Hi", "--json"]);
    expect(JSON.parse(stdout)).toEqual(completion);
    expect(stdout).not.toContain("\x1b");
    expect(stderr).toBe("");
  });

  test("shows the model's thinking only on a terminal", async () => {
    answers = [() => stream([chunk({ reasoning_content: "Hm. " }), chunk({ content: "Yes." }, "stop")])];
    const person = await chat(["Hi"], { isTTY: true });
    expect([person.stdout, person.stderr.startsWith("Hm. \n")]).toEqual(["Yes.\n", true]);
    expect((await chat(["Hi"])).stderr).not.toContain("Hm.");
  });

  test.each([
    [[""], {}],
    [[], { stdin: " \n" }],
    [["-", "--api-key-stdin"], { stdin: "key" }],
    [["--json"], { isTTY: true }],
    [["Hi", "--temperature", "3"], {}],
    [["Hi", "--max-tokens", "0"], {}],
  ])("refuses %p before sending anything", async (args, surroundings) => {
    expect((await chat(args, surroundings)).code).toBe(2);
    expect(api.seen).toEqual([]);
  });
});

describe("the default model of headrace chat", () => {
  test("chooses the first model that can chat, the demo model last", async () => {
    models = [
      { id: "embedder", capabilities: { chat: false } },
      { id: "tiny-demo", capabilities: { chat: true } },
      { id: "unknown" },
      { id: "big", capabilities: { chat: true } },
    ];
    await chat(["Hi"]);
    models = models.slice(0, 3);
    await chat(["Hi"]);
    models = models.slice(0, 2);
    await chat(["Hi"]);
    expect(sent().map(({ model }) => model)).toEqual(["big", "unknown", "tiny-demo"]);
  });

  test("requires a model's name if the key may not list models", async () => {
    api.answer = () => refusal(403, "insufficient_scope", "API key lacks required scope: models:read");
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--model");
  });

  test("tells how to get a model if none can chat", async () => {
    models = [{ id: "embedder", capabilities: { chat: false } }];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toContain("no model that can chat (embedder)");
    expect(stderr).toContain("headrace pull");
  });
});

describe("headrace chat with a busy server", () => {
  const busy = (status: number, headers: Record<string, string>) => () =>
    refusal(status, "busy", "Try later.", headers);

  test("retries after the time that a busy server names, with a note", async () => {
    answers = [
      busy(429, { "retry-after-ms": "5", "retry-after": "60" }),
      busy(503, { "retry-after": "0" }),
      says("Yes."),
    ];
    const { code, stdout, stderr } = await chat(["Hi"]);
    expect([code, stdout]).toEqual([0, "Yes.\n"]);
    expect(stderr).toContain("Try later. (429); trying again in 1 s.");
    expect(sent()).toHaveLength(3);
  });

  test("retries a busy server at most three times", async () => {
    answers = [busy(429, { "retry-after-ms": "1" })];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toEndWith("Try later. (429)\n");
    expect(sent()).toHaveLength(3);
  });

  test.each([
    ["says that it is no use", { "x-should-retry": "false", "retry-after-ms": "1" }],
    ["wants minutes", { "retry-after": "600" }],
  ])("does not retry a busy server that %s", async (_, headers) => {
    answers = [busy(429, headers)];
    expect((await chat(["Hi"])).code).toBe(1);
    expect(sent()).toHaveLength(1);
  });
});

describe("a failing stream in headrace chat", () => {
  test("prints the text so far and the error of a stream, and exits with 1", async () => {
    const error = { error: { message: "The model \x1bfailed.", type: "api_error", code: "upstream_error" } };
    answers = [() => stream([chunk({ content: "The Rh" }), error], { done: false })];
    const { code, stdout, stderr } = await chat(["Hi"]);
    expect([code, stdout]).toEqual([1, "The Rh\n"]);
    expect(stderr).toBe("error: The answer failed: The model failed.\n");
  });

  test("does not treat a stream that ends too early as complete", async () => {
    answers = [() => stream([chunk({ content: "The Rh" })], { done: false })];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toContain("The answer broke off: the connection was closed before its end.");
  });

  test("reports an event that is not a chunk", async () => {
    answers = [() => stream([{ choices: "none" }])];
    expect((await chat(["Hi"])).stderr).toContain("an event that is no chunk");
  });
});

describe("a conversation in headrace chat", () => {
  test("sends the earlier messages of a conversation, and ends with Ctrl-D", async () => {
    answers = [says("One."), says("Two.")];
    const { code, stdout } = await talk(["first", "second"], {}, ["--system", "Be brief."]);
    expect([code, stdout]).toEqual([0, "One.\nTwo.\n"]);
    expect(sent()[1].messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "first" },
      { role: "assistant", content: "One." },
      { role: "user", content: "second" },
    ]);
  });

  test("reads messages of several lines", async () => {
    await talk(["one \\", "two", '"""three', "", ' four"""', '"""', "five", '"""', "pasted\nlines", " /not a command"]);
    expect(sent().map(({ messages }) => messages.at(-1).content)).toEqual([
      "one \ntwo",
      "three\n\n four",
      "five",
      "pasted\nlines",
      "/not a command",
    ]);
  });

  test("keeps the partial answer that Ctrl-C stopped in the conversation", async () => {
    answers = [() => stream([chunk({ content: "The Rh" })], { open: true, done: false }), says("Again.")];
    let interrupt = () => {};
    const outcome = await talk(["first", "second"], {
      onAnswer(controlC) {
        interrupt = controlC;
      },
      onPrint: (text) => text === "The Rh" && interrupt(),
    });
    expect(outcome.code).toBe(0);
    expect(outcome.stdout).toBe("The Rh\nAgain.\n");
    expect(outcome.stderr).toContain("Stopped.");
    expect(sent()[1].messages).toEqual([
      { role: "user", content: "first" },
      { role: "assistant", content: "The Rh" },
      { role: "user", content: "second" },
    ]);
  });

  test("continues after an error without the failed question", async () => {
    answers = [() => refusal(500, "internal_error", "The gateway failed."), says("Better.")];
    const { code, stdout, stderr } = await talk(["first", "second"]);
    expect([code, stdout]).toEqual([0, "Better.\n"]);
    expect(stderr).toContain("The gateway failed. (500)");
    expect(sent()[1].messages).toEqual([{ role: "user", content: "second" }]);
  });

  test("repeats the last question for /retry and replaces its answer", async () => {
    answers = [says("One."), says("Other."), says("Last.")];
    await talk(["first", "/retry", "second"]);
    expect(sent()[1].messages).toEqual([{ role: "user", content: "first" }]);
    expect(sent()[2].messages.map(({ content }: { content: string }) => content)).toEqual([
      "first",
      "Other.",
      "second",
    ]);
  });

  test("clears the conversation for /clear, and sets instructions for /system and the model for /model", async () => {
    models = [{ id: "qwen", capabilities: { chat: true } }, { id: "other" }];
    const lines = ["first", "/clear", "/system In verse.", "/model other", "second", "/system none", "third"];
    const { stderr } = await talk([...lines, "/model"]);
    expect(sent()[1]).toMatchObject({
      model: "other",
      messages: [
        { role: "system", content: "In verse." },
        { role: "user", content: "second" },
      ],
    });
    expect(sent()[2].messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "user"]);
    expect(stderr).toContain("  qwen\n* other\n");
  });

  test("reports an invalid command in a conversation and continues", async () => {
    const { code, stdout, stderr } = await talk(["/nope", "/model gone", "/retry", "/save", "/help", "hello"]);
    expect([code, stdout]).toEqual([0, "The Rhône, the Elbe.\n"]);
    for (const text of [
      "no command /nope; /help",
      "no model gone; /model",
      "no question yet",
      "Name a file",
      "/exit",
    ]) {
      expect(stderr).toContain(text);
    }
  });

  test("ends with /exit, and with the second Ctrl-C at an empty prompt", async () => {
    const controlC: Typed = { kind: "interrupted", empty: true };
    const abandoned: Typed = { kind: "interrupted", empty: false };
    await talk(["/exit", "not asked"]);
    await talk([controlC, abandoned, controlC, "asked", controlC, controlC, "not asked"]);
    expect(sent().map(({ messages }) => messages[0].content)).toEqual(["asked"]);
  });
});

describe("/save in headrace chat", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "headrace-cli-chat-"));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  test("saves the conversation for its owner only, as Markdown or JSON", async () => {
    const [markdown, json] = [join(directory, "talk.md"), join(directory, "talk.json")];
    answers = [says("The \x1b[2JRhône.")];
    const { stderr } = await talk(["Name a river.", `/save ${markdown}`, `/save ${json}`]);
    expect(stderr).toContain(`Saved to ${markdown}.`);
    expect(await readFile(markdown, "utf8")).toBe(
      "# Conversation with qwen\n\n## You\n\nName a river.\n\n## Model\n\nThe [2JRhône.\n",
    );
    expect(JSON.parse(await readFile(json, "utf8"))).toEqual({
      model: "qwen",
      messages: [
        { role: "user", content: "Name a river." },
        { role: "assistant", content: "The \x1b[2JRhône." },
      ],
    });
    expect((await stat(json)).mode & 0o777).toBe(0o600);
  });

  test("does not overwrite a file with /save", async () => {
    const path = join(directory, "talk.md");
    await writeFile(path, "mine");
    const { stderr } = await talk(["Name a river.", `/save ${path}`, `/save ${directory}/no/where.md`]);
    expect(stderr).toContain(`${path} exists already. Choose another name.`);
    expect(stderr).toContain("cannot be written (ENOENT)");
    expect(await readFile(path, "utf8")).toBe("mine");
  });
});
