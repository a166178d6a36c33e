// `headrace chat`: prints one answer to a prompt, or holds a conversation at the terminal.
import { InvalidArgumentError } from "commander";
import { demoId } from "../../engines/llama/model-store.ts";
import type { OptionValues } from "../command.ts";
import { parseCount } from "../keys/key-settings.ts";
import { ApiError } from "../login/api-request.ts";
import type { connectionOptions } from "../login/client.ts";
import type { Connection } from "../login/connection.ts";
import { type ServerCall, serverCommand } from "../login/server-command.ts";
import { type ListedModel, readModels } from "../models/models.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, exitCodes, interruptible, printable } from "../terminal/terminal.ts";
import { AnswerView } from "./answer-view.ts";
import { type ChatMessage, type ChatSettings, requestAnswer, requestCompletion } from "./chat-request.ts";
import { ChatSession } from "./chat-session.ts";

const chatOptions = {
  model: ["-m, --model <id>", "model to use (default: the first that can chat)"],
  system: ["-s, --system <text>", "instructions for the model"],
  temperature: ["--temperature <number>", "0 (focused) to 2 (random)", parseTemperature],
  maxTokens: ["--max-tokens <number>", "maximum length of the answer", parseCount],
  store: ["--store", "store the answer at the server (see chat:read)"],
  stream: ["--no-stream", "wait for the whole answer"],
  json: ["--json", "with a prompt: print the completion as the API gives it"],
} as const;
type ChatCall = ServerCall<OptionValues<typeof chatOptions & typeof connectionOptions>>;

export const chatCommand = serverCommand({
  name: "chat",
  summary: "talk to a model in the terminal",
  description: "Ask a model once, or talk to it: without a prompt, at a terminal, a conversation begins.",
  arguments: [["[prompt...]", "the prompt; - reads standard input"]],
  options: chatOptions,
  examples: [
    "headrace chat",
    `headrace chat "Name three rivers."`,
    `headrace chat --model qwen --system "Answer in French." "Who are you?"`,
    `git diff | headrace chat "Describe this change:" -`,
    "headrace chat < question.txt",
  ],
  help: ["In a conversation, /help lists the commands. Ctrl-C stops an answer, Ctrl-D ends."],
  async run({ connect, ask, context, options, terminal }, words) {
    const prompt = await readPrompt(context, words, options);
    const connection = await connect();
    const model = options.model ?? (await ask(chooseModel));
    const { temperature, maxTokens, store, stream = true, system } = options;
    const settings: ChatSettings = { model, temperature, maxTokens, store, stream };
    if (prompt !== undefined) {
      const messages: ChatMessage[] = [...systemMessages(system), { role: "user", content: prompt }];
      return answerOnce(context, connection, settings, messages, options);
    }
    const editor = context.input.openEditor();
    const session = new ChatSession({ terminal, editor, connection, settings, system });
    await interruptible((signal) => session.run(signal));
  },
});

/** Reads the prompt from the arguments and standard input. Returns undefined if the person wants a conversation. */
async function readPrompt(
  { input }: CliContext,
  words: readonly string[],
  options: ChatCall["options"],
): Promise<string | undefined> {
  const fromInput = words.includes("-") || (words.length === 0 && !input.isTerminal);
  if (fromInput && options.apiKeyStdin) {
    throw new CliError(
      "Standard input cannot give both the prompt and the key (--api-key-stdin). Give the prompt as an argument, or set HEADRACE_API_KEY.",
      exitCodes.usage,
    );
  }
  if (words.length === 0 && input.isTerminal) {
    if (options.json) throw new CliError('--json needs a prompt: headrace chat --json "…"', exitCodes.usage);
    return undefined;
  }
  const given = fromInput ? (await input.readAll()).trim() : "";
  const prompt = words.length === 0 ? given : joined(words, given);
  if (prompt.trim() === "") throw new CliError("The prompt is empty.", exitCodes.usage);
  return prompt;
}

/** Joins the words of the prompt. Standard input, which `-` stands for, becomes a paragraph of its own. */
function joined(words: readonly string[], given: string): string {
  const at = words.indexOf("-");
  if (at < 0) return words.join(" ");
  const parts = [words.slice(0, at).join(" "), given, words.slice(at + 1).join(" ")];
  return parts.filter((part) => part !== "").join("\n\n");
}

async function answerOnce(
  { terminal }: CliContext,
  connection: Connection,
  settings: ChatSettings,
  messages: readonly ChatMessage[],
  { json }: ChatCall["options"],
): Promise<void> {
  const view = new AnswerView(terminal);
  if (json) {
    const raw = await interruptible((signal) => requestCompletion(connection, settings, messages, view, signal));
    terminal.print(JSON.stringify(raw, undefined, 2));
    return;
  }
  try {
    const answer = await interruptible((signal) => requestAnswer(connection, settings, messages, view, signal));
    view.summary(answer);
  } finally {
    view.end();
  }
}

export function systemMessages(system: string | undefined): ChatMessage[] {
  return system === undefined || system === "" ? [] : [{ role: "system", content: system }];
}

/** Chooses the first model that declares chat, or else a model that may support it. The demo model comes last. */
async function chooseModel(connection: Connection, signal: AbortSignal): Promise<string> {
  let models: readonly ListedModel[];
  try {
    models = await readModels(connection, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "insufficient_scope") throw error;
    throw new CliError("This key may not list models (scope models:read), so name one with --model.", exitCodes.usage);
  }
  const able = models.filter(
    ({ capabilities, alias_of: model }) => capabilities?.chat !== false && model === undefined,
  );
  const others = able.filter(({ id }) => id !== demoId);
  const best = others.find(({ capabilities }) => capabilities?.chat === true) ?? others[0] ?? able[0];
  if (best) return best.id;
  const what =
    models.length === 0 ? "no model" : `no model that can chat (${models.map(({ id }) => printable(id)).join(", ")})`;
  throw new CliError(`The server serves ${what} to this key. Fetch one with: headrace pull hf:Qwen/Qwen3-0.6B-GGUF`);
}

function parseTemperature(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 0 && value <= 2)) throw new InvalidArgumentError("It must be a number from 0 to 2.");
  return value;
}
