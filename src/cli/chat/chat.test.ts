// `headrace chat` against a server that answers as a script says.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiServer, refusal, startApiServer } from "../../../tests/fixtures/api-server.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import type { Typed } from "../terminal/line-editor.ts";

let api: ApiServer;
/** Answers to POST /chat/completions, in order; the last one again for what comes after. */
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

describe("one answer", () => {
  test("one answer is printed as it is, with tokens and speed on standard error", async () => {
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

  test("one answer has what the options say", async () => {
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

  test("one answer takes the prompt from standard input where that is no terminal, or where - stands for it", async () => {
    await chat([], { stdin: "From a file.\n" });
    await chat(["Sum up:", "-"], { stdin: "long\ntext\n" });
    expect(sent().map(({ messages }) => messages[0].content)).toEqual(["From a file.", "Sum up:\n\nlong\ntext"]);
  });

  test("one answer does not let the model command the terminal; ends of lines, tabs and joiners stay", async () => {
    answers = [says("a\x1b]0;own", "ed\x07b\r\n\tc\u202ed\u009b2J 👩\u200d🔬")];
    expect((await chat(["Hi"])).stdout).toBe("a]0;ownedb\n\tcd2J 👩\u200d🔬\n");
  });

  test("one answer comes in one piece with --no-stream", async () => {
    const message = { role: "assistant", content: "Whole." };
    answers = [() => Response.json({ choices: [{ message, finish_reason: "length" }], usage })];
    const { stdout, stderr } = await chat(["Hi", "--no-stream"]);
    expect(stdout).toBe("Whole.\n");
    expect(stderr).toContain("Cut off: the limit of tokens is reached");
    expect(stderr).toContain("12 tokens in, 3 out");
    expect(sent()[0]).not.toHaveProperty("stream");
  });

  test("one answer is the API's completion with --json", async () => {
    const completion = { id: "chatcmpl-1", choices: [{ message: { content: "\x1b[2J" } }], later: "kept" };
    answers = [() => Response.json(completion)];
    const { stdout, stderr } = await chat(["Hi", "--json"]);
    expect(JSON.parse(stdout)).toEqual(completion);
    expect(stdout).not.toContain("\x1b");
    expect(stderr).toBe("");
  });

  test("one answer shows what the model thinks before it to a person only", async () => {
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
  ])("one answer is refused for %p before anything is sent", async (args, surroundings) => {
    expect((await chat(args, surroundings)).code).toBe(2);
    expect(api.seen).toEqual([]);
  });
});

describe("the model, where none is named,", () => {
  test("the model, where none is named, is the first that can chat, the demo model last", async () => {
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

  test("the model, where none is named, must be named by a key that may not list models", async () => {
    api.answer = () => refusal(403, "insufficient_scope", "API key lacks required scope: models:read");
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--model");
  });

  test("the model, where none is named, may be missing altogether, and then how to get one is said", async () => {
    models = [{ id: "embedder", capabilities: { chat: false } }];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toContain("no model that can chat (embedder)");
    expect(stderr).toContain("headrace pull");
  });
});

describe("a busy server", () => {
  const busy = (status: number, headers: Record<string, string>) => () =>
    refusal(status, "busy", "Try later.", headers);

  test("a busy server is asked again after the time that it names, with a note", async () => {
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

  test("a busy server is asked three times at most", async () => {
    answers = [busy(429, { "retry-after-ms": "1" })];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toEndWith("Try later. (429)\n");
    expect(sent()).toHaveLength(3);
  });

  test.each([
    ["says that it is no use", { "x-should-retry": "false", "retry-after-ms": "1" }],
    ["wants minutes", { "retry-after": "600" }],
  ])("a busy server is not asked again where it %s", async (_, headers) => {
    answers = [busy(429, headers)];
    expect((await chat(["Hi"])).code).toBe(1);
    expect(sent()).toHaveLength(1);
  });
});

describe("a stream that fails", () => {
  test("a stream that fails with an error event shows what came, and the error, and ends with 1", async () => {
    const error = { error: { message: "The model \x1bfailed.", type: "api_error", code: "upstream_error" } };
    answers = [() => stream([chunk({ content: "The Rh" }), error], { done: false })];
    const { code, stdout, stderr } = await chat(["Hi"]);
    expect([code, stdout]).toEqual([1, "The Rh\n"]);
    expect(stderr).toBe("error: The answer failed: The model failed.\n");
  });

  test("a stream that fails by ending too early is not taken for whole", async () => {
    answers = [() => stream([chunk({ content: "The Rh" })], { done: false })];
    const { code, stderr } = await chat(["Hi"]);
    expect(code).toBe(1);
    expect(stderr).toContain("The answer broke off: the connection was closed before its end.");
  });

  test("a stream that fails with something that is no chunk says so", async () => {
    answers = [() => stream([{ choices: "none" }])];
    expect((await chat(["Hi"])).stderr).toContain("an event that is no chunk");
  });
});

describe("a conversation", () => {
  test("a conversation carries what was said before, and ends with Ctrl-D", async () => {
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

  test("a conversation takes texts of several lines", async () => {
    await talk(["one \\", "two", '"""three', "", ' four"""', '"""', "five", '"""', "pasted\nlines", " /not a command"]);
    expect(sent().map(({ messages }) => messages.at(-1).content)).toEqual([
      "one \ntwo",
      "three\n\n four",
      "five",
      "pasted\nlines",
      "/not a command",
    ]);
  });

  test("a conversation keeps what was there of an answer that Ctrl-C stopped", async () => {
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

  test("a conversation goes on after an error, without the question that got no answer", async () => {
    answers = [() => refusal(500, "internal_error", "The gateway failed."), says("Better.")];
    const { code, stdout, stderr } = await talk(["first", "second"]);
    expect([code, stdout]).toEqual([0, "Better.\n"]);
    expect(stderr).toContain("The gateway failed. (500)");
    expect(sent()[1].messages).toEqual([{ role: "user", content: "second" }]);
  });

  test("/retry asks the last question again, in place of its answer", async () => {
    answers = [says("One."), says("Other."), says("Last.")];
    await talk(["first", "/retry", "second"]);
    expect(sent()[1].messages).toEqual([{ role: "user", content: "first" }]);
    expect(sent()[2].messages.map(({ content }: { content: string }) => content)).toEqual([
      "first",
      "Other.",
      "second",
    ]);
  });

  test("/clear forgets what was said, /system replaces the instructions, /model the model", async () => {
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

  test("a conversation says what is wrong with a command and goes on", async () => {
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

  test("a conversation ends with /exit, and with the second of two Ctrl-C at an empty prompt", async () => {
    const controlC: Typed = { kind: "interrupted", empty: true };
    const abandoned: Typed = { kind: "interrupted", empty: false };
    await talk(["/exit", "not asked"]);
    await talk([controlC, abandoned, controlC, "asked", controlC, controlC, "not asked"]);
    expect(sent().map(({ messages }) => messages[0].content)).toEqual(["asked"]);
  });
});

describe("/save", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "headrace-cli-chat-"));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  test("/save writes the conversation for its owner only, as Markdown or JSON", async () => {
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

  test("/save replaces no file", async () => {
    const path = join(directory, "talk.md");
    await writeFile(path, "mine");
    const { stderr } = await talk(["Name a river.", `/save ${path}`, `/save ${directory}/no/where.md`]);
    expect(stderr).toContain(`${path} exists already. Choose another name.`);
    expect(stderr).toContain("cannot be written (ENOENT)");
    expect(await readFile(path, "utf8")).toBe("mine");
  });
});
