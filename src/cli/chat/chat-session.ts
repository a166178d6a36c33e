// A conversation at the terminal: reads input and commands, and keeps the answers.

import type { Connection } from "../login/connection.ts";
import { readModels } from "../models/models.ts";
import type { LineEditor } from "../terminal/line-editor.ts";
import { CliError, printable, printableText, reportError, type Terminal } from "../terminal/terminal.ts";
import { AnswerView } from "./answer-view.ts";
import { type ChatMessage, type ChatSettings, requestAnswer } from "./chat-request.ts";
import { saveConversation } from "./chat-transcript.ts";

export interface ChatSessionOptions {
  terminal: Terminal;
  editor: LineEditor;
  connection: Connection;
  settings: ChatSettings;
  system: string | undefined;
}

const help = `/model [id]      show the models, or take another
/system [text]   show the instructions, or replace them; /system none removes them
/clear           start a new conversation
/retry           answer the last question again
/save <file>     write the conversation to a new file; as JSON where the name ends in .json
/exit            end, as does Ctrl-D

A line that ends in \\ continues on the next. """ begins and ends a text of several
lines. Ctrl-C stops an answer and keeps what is there of it.`;

/** The marker that begins and ends a multi-line text, as in Python. */
const fence = '"""';

export class ChatSession {
  readonly #terminal: Terminal;
  readonly #editor: LineEditor;
  readonly #connection: Connection;
  #settings: ChatSettings;
  #system: string | undefined;
  #messages: ChatMessage[] = [];
  #lastPrompt: string | undefined;

  constructor({ terminal, editor, connection, settings, system }: ChatSessionOptions) {
    this.#terminal = terminal;
    this.#editor = editor;
    this.#connection = connection;
    this.#settings = settings;
    this.#system = system;
  }

  /** Runs until the person ends the conversation. Rejects only with the reason of `signal`. */
  async run(signal: AbortSignal): Promise<void> {
    const { note, err } = this.#terminal;
    note(
      `${err.bold(printable(this.#settings.model))} ${err.dim(`at ${this.#connection.baseUrl}; /help lists the commands, Ctrl-D ends.`)}`,
    );
    let interruptedOnce = false;
    for (;;) {
      const typed = await this.#readText(signal);
      if (typed === "end") {
        // Prints an empty line, because the shell's prompt would otherwise continue the last line.
        note("");
        return;
      }
      if (typed === "interrupted at nothing") {
        if (interruptedOnce) return;
        interruptedOnce = true;
        note(err.dim("Ctrl-C again, Ctrl-D or /exit ends."));
        continue;
      }
      interruptedOnce = false;
      if (typed === "interrupted" || typed.text.trim() === "") continue;
      try {
        if ((await this.#take(typed.text, signal)) === "exit") return;
      } catch (error) {
        signal.throwIfAborted();
        reportError(error, this.#terminal);
      }
    }
  }

  /** Reads one text. The text has several lines if the person begins it with the marker. */
  async #readText(signal: AbortSignal): Promise<{ text: string } | "end" | "interrupted" | "interrupted at nothing"> {
    const lines: string[] = [];
    let fenced = false;
    for (;;) {
      const typed = await this.#editor.read(lines.length > 0 || fenced ? this.#continuation() : "> ", signal);
      if (typed.kind === "end") return "end";
      if (typed.kind === "interrupted") {
        return typed.empty && lines.length === 0 && !fenced ? "interrupted at nothing" : "interrupted";
      }
      let { text } = typed;
      if (!fenced && lines.length === 0 && text.trimStart().startsWith(fence)) {
        fenced = true;
        text = text.trimStart().slice(fence.length);
        if (text === "") continue;
      }
      if (fenced && text.trimEnd().endsWith(fence)) {
        const last = text.trimEnd().slice(0, -fence.length);
        return { text: [...lines, ...(last === "" ? [] : [last])].join("\n") };
      }
      const continues = !fenced && text.endsWith("\\");
      lines.push(continues ? text.slice(0, -1) : text);
      if (!fenced && !continues) return { text: lines.join("\n") };
    }
  }

  #continuation(): string {
    return this.#terminal.unicode ? "… " : ". ";
  }

  async #take(text: string, signal: AbortSignal): Promise<"exit" | undefined> {
    // Only a text of one line can be a command: pasted text may begin with a path.
    const command = text.includes("\n") ? null : /^\/(\S*)\s*(.*)$/.exec(text);
    if (command === null) {
      await this.#answer(text.trim(), signal);
      return undefined;
    }
    const [, name = "", rest = ""] = command;
    const argument = rest.trim();
    const { note } = this.#terminal;
    switch (name) {
      case "exit":
      case "quit":
        return "exit";
      case "help":
        note(help);
        break;
      case "model":
        await this.#chooseModel(argument, signal);
        break;
      case "system":
        this.#setSystem(argument);
        break;
      case "clear":
        this.#messages = [];
        this.#lastPrompt = undefined;
        note("A new conversation begins.");
        break;
      case "retry":
        await this.#retry(signal);
        break;
      case "save":
        note(`Saved to ${await saveConversation(argument, this.#settings.model, this.#conversation())}.`);
        break;
      default:
        throw new CliError(
          `There is no command /${name}; /help lists them. To send a text that begins with /, put a blank before it.`,
        );
    }
    return undefined;
  }

  async #answer(prompt: string, signal: AbortSignal): Promise<void> {
    this.#lastPrompt = prompt;
    const view = new AnswerView(this.#terminal);
    const stop = new AbortController();
    const unwatch = this.#editor.watch(() => stop.abort());
    const question: ChatMessage = { role: "user", content: prompt };
    try {
      const messages = [...this.#conversation(), question];
      const either = AbortSignal.any([signal, stop.signal]);
      view.summary(await requestAnswer(this.#connection, this.#settings, messages, view, either));
      this.#terminal.note("");
    } catch (error) {
      view.end();
      if (signal.aborted || !stop.signal.aborted) throw error;
      this.#terminal.note(this.#terminal.err.dim("Stopped."));
    } finally {
      unwatch();
      // A question without any answer is dropped, since two questions in a row confuse many models. `/retry` still has
      // the question.
      if (view.received !== "") this.#messages.push(question, { role: "assistant", content: view.received });
    }
  }

  async #retry(signal: AbortSignal): Promise<void> {
    const prompt = this.#lastPrompt;
    if (prompt === undefined) throw new CliError("There is no question yet.");
    const [question, answer] = this.#messages.slice(-2);
    if (question?.content === prompt && answer?.role === "assistant") this.#messages.splice(-2);
    await this.#answer(prompt, signal);
  }

  async #chooseModel(id: string, signal: AbortSignal): Promise<void> {
    const models = (await readModels(this.#connection, signal)).map((model) => model.id);
    if (id === "") {
      const current = this.#settings.model;
      this.#terminal.note(models.map((model) => `${model === current ? "*" : " "} ${printable(model)}`).join("\n"));
      return;
    }
    if (!models.includes(id)) throw new CliError(`There is no model ${id}; /model lists them.`);
    this.#settings = { ...this.#settings, model: id };
    this.#terminal.note(`From now on ${printable(id)} answers.`);
  }

  #setSystem(text: string): void {
    if (text !== "") this.#system = text === "none" ? undefined : text;
    this.#terminal.note(this.#system ? `Instructions: ${printableText(this.#system)}` : "There are no instructions.");
  }

  #conversation(): ChatMessage[] {
    const system: ChatMessage[] = this.#system ? [{ role: "system", content: this.#system }] : [];
    return [...system, ...this.#messages];
  }
}
