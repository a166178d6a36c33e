// Writes the turns of a conversation as `system` and `messages`. In `messages`, users and assistants alternate.
import { fieldError } from "../../../base/errors.ts";
import type { EngineTools } from "../conversation/call-names.ts";
import type { Conversation, ConversationMessage, InstructionTurn, ResultTurn } from "../conversation/conversation.ts";
import { pairedCalls } from "../conversation/paired-calls.ts";
import { type Json, textOf } from "./json.ts";
import { answerBlocks, CallIds, marked, promptBlocks, textBlock, withoutBlanks } from "./write-blocks.ts";

export interface WrittenTurns {
  readonly system: string | readonly Json[] | undefined;
  readonly messages: readonly Json[];
}

/** The instruction that asks the model for JSON if its server has no JSON mode. */
const jsonOnly =
  "Answer with one JSON object and nothing else: no words before or after it, and no code fence around it.";

/**
 * First message of a conversation that begins with the assistant. Anthropic requires that the first message is a
 * user's.
 */
const begins = "[You began this conversation:]";

/**
 * Writes the leading instructions as `system`. Later instructions stay in place, between tags in a user's message. At
 * that place, Anthropic accepts `role: "system"` only for its newest models, and other servers refuse it. Throws
 * `invalid_request` for a part that the format does not know.
 */
export function writeTurns({ turns, output }: Conversation, tools: EngineTools): WrittenTurns {
  const start = turns.findIndex((turn) => !isInstruction(turn));
  const leading = (start < 0 ? turns : turns.slice(0, start)).filter(isInstruction);
  const messages = new Messages(turns, tools);
  const system = leading.flatMap(({ parts }) => promptBlocks(parts));
  if (output?.type === "json") system.push(textBlock(jsonOnly));
  if (start >= 0) for (const turn of pairedCalls(turns.slice(start))) messages.add(turn);
  const instructions = withoutBlanks(system);
  const written = messages.written();
  if (written.length > 0)
    return { system: instructions.length > 0 ? joined(instructions) : undefined, messages: written };
  // Messages requires at least one message. Instructions alone are therefore sent as a user's message.
  if (instructions.length > 0)
    return { system: undefined, messages: [{ role: "user", content: shortest(instructions) }] };
  throw fieldError(turns[0]?.place ?? "messages", "says nothing that the model could answer; send a text.");
}

interface Message {
  readonly role: "user" | "assistant";
  /** The tool results in a user's message. They must precede all other content. */
  readonly results: Json[];
  readonly blocks: Json[];
}

class Messages {
  readonly #all: Message[] = [];
  readonly #ids: CallIds;
  readonly #tools: EngineTools;

  constructor(turns: readonly ConversationMessage[], tools: EngineTools) {
    this.#ids = new CallIds(turns.flatMap(callIdsOf));
    this.#tools = tools;
  }

  add(turn: ConversationMessage): void {
    if (turn.role === "tool") {
      this.#of("user").results.push(this.#result(turn));
      return;
    }
    const message = this.#of(turn.role === "assistant" ? "assistant" : "user");
    for (const block of this.#blocksOf(turn)) message.blocks.push(block);
  }

  #blocksOf(turn: Exclude<ConversationMessage, ResultTurn>): Json[] {
    if (turn.role === "assistant") return answerBlocks(turn.parts, this.#ids, this.#tools);
    const blocks = promptBlocks(turn.parts);
    return isInstruction(turn) ? blocks.map(reminder) : blocks;
  }

  /**
   * Returns the messages. Empty messages are left out, because Anthropic refuses them. A message is empty if it had
   * only reasoning without a signature.
   */
  written(): Json[] {
    const messages = this.#all.flatMap(({ role, results, blocks }) => {
      const content = [...results, ...withoutBlanks(blocks)];
      return content.length === 0 ? [] : [{ role, content: shortest(content) }];
    });
    return messages[0]?.role === "assistant" ? [{ role: "user", content: begins }, ...messages] : messages;
  }

  #of(role: Message["role"]): Message {
    const last = this.#all.at(-1);
    // An empty message is dropped before a message with another role begins.
    if (last && last.role !== role && last.blocks.length + last.results.length === 0) this.#all.pop();
    const before = this.#all.at(-1);
    if (before?.role === role) return before;
    const message: Message = { role, results: [], blocks: [] };
    this.#all.push(message);
    return message;
  }

  #result({ parts, failed, cache }: ResultTurn): Json {
    const blocks = withoutBlanks(promptBlocks(parts));
    return {
      type: "tool_result",
      tool_use_id: this.#ids.ofResult(),
      ...(blocks.length > 0 ? { content: shortest(blocks) } : {}),
      ...(failed ? { is_error: true } : {}),
      ...marked(cache),
    };
  }
}

function callIdsOf(turn: ConversationMessage): readonly string[] {
  if (turn.role === "tool") return [turn.callId];
  if (turn.role !== "assistant") return [];
  return turn.parts.flatMap((part) => (part.type === "call" ? [part.callId] : []));
}

function isInstruction(turn: ConversationMessage): turn is InstructionTurn {
  return turn.role === "system" || turn.role === "developer";
}

/** Claude Code puts this tag around instructions within a user's message, and Claude recognises the tag. */
function reminder(block: Json): Json {
  const text = textOf(block["text"]);
  return text === undefined ? block : { ...block, text: `<system-reminder>\n${text}\n</system-reminder>` };
}

/** Returns a single text without a cache mark as a string. Returns other blocks as a list. */
function shortest(blocks: readonly Json[]): string | readonly Json[] {
  const [first] = blocks;
  const text = blocks.length === 1 && first && isPlainText(first) ? textOf(first["text"]) : undefined;
  return text ?? blocks;
}

/** Joins texts without cache marks into one text, because some servers do not accept blocks in `system`. */
function joined(system: readonly Json[]): string | readonly Json[] {
  return system.every(isPlainText) ? system.map(({ text }) => text).join("\n\n") : system;
}

function isPlainText(block: Json): boolean {
  return block["type"] === "text" && block["cache_control"] === undefined;
}
