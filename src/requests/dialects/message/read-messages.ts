// Reads a Messages request into conversation turns. One message may contain several turns.
import { fieldError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import type {
  AnswerPart,
  CallPart,
  ConversationMessage,
  Part,
  ReasoningPart,
  RequestPath,
  ResultTurn,
} from "../conversation/conversation.ts";
import { cacheOf, contentParts, partsOf, unknownBlock } from "./blocks.ts";
import { isObject, type Json, objectOf, objectsOf, textOf } from "./json.ts";

/**
 * Matches the header that Claude Code puts into the first block of `system`. The header contains the version and the
 * kind of session. Anthropic removes it before it caches the prompt. For another model, the header would give the
 * prompt of every session a different beginning.
 */
const attribution = /^x-anthropic-billing-header:[^\n]*\n*/;

export interface ReadTurns {
  readonly turns: readonly ConversationMessage[];
  /**
   * Names of tools that a `tool_reference` names. If a tool is marked for deferred loading, it is offered only if it is
   * one of these.
   */
  readonly loaded: ReadonlySet<string>;
  /**
   * Kinds of blocks and members that only Anthropic's servers understand, each with the place where it first occurs.
   */
  readonly leftOut: Readonly<Record<string, RequestPath>>;
}

/** Reads the turns. Throws `invalid_request` if a message or block means nothing to any other model server. */
export function readTurns(body: Json, seal: Seal): ReadTurns {
  const reading = new TurnReading(seal);
  reading.system(body["system"]);
  for (const [i, message] of objectsOf(body["messages"]).entries()) reading.message(message, `messages[${i}]`);
  return reading;
}

class TurnReading implements ReadTurns {
  readonly turns: ConversationMessage[] = [];
  readonly loaded = new Set<string>();
  readonly leftOut: Record<string, RequestPath> = {};
  readonly #seal: Seal;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  system(system: unknown): void {
    const parts = withoutAttribution(contentParts(system, "system"));
    if (parts.length > 0) this.turns.push({ role: "system", parts, place: "system" });
  }

  message({ role, content }: Json, place: RequestPath): void {
    if (role === "user") this.#user(content, place);
    else if (role === "assistant") this.#assistant(content, place);
    else if (role === "system") this.turns.push({ role, parts: contentParts(content, place), place });
    else throw fieldError(`${place}.role`, "it is one of `user`, `assistant` and `system`.");
  }

  /**
   * Results come before all other parts, because other formats have results as separate messages directly after the
   * calls.
   */
  #user(content: unknown, place: RequestPath): void {
    if (typeof content === "string") {
      this.turns.push({ role: "user", parts: contentParts(content, place), place });
      return;
    }
    const parts: Part[] = [];
    for (const [i, block] of objectsOf(content).entries()) {
      const blockPlace = `${place}.content[${i}]`;
      if (block["type"] === "tool_result") this.turns.push(this.#result(block, blockPlace));
      else if (!this.#isServers(block, blockPlace)) parts.push(...partsOf(block, blockPlace));
      this.#noteCitations(block, blockPlace);
    }
    if (parts.length > 0) this.turns.push({ role: "user", parts, place });
  }

  #result(block: Json, place: RequestPath): ResultTurn {
    for (const [i, inner] of objectsOf(block["content"]).entries()) {
      const { type, tool_name } = inner;
      if (type === "tool_reference" && typeof tool_name === "string") this.loaded.add(tool_name);
      this.#noteCitations(inner, `${place}.content[${i}]`);
    }
    return {
      role: "tool",
      callId: textOf(block["tool_use_id"]) ?? "",
      parts: contentParts(block["content"], place),
      kind: "function",
      failed: block["is_error"] === true || undefined,
      cache: cacheOf(block),
      place,
    };
  }

  #assistant(content: unknown, place: RequestPath): void {
    const parts: AnswerPart[] = typeof content === "string" ? [{ type: "text", text: content }] : [];
    for (const [i, block] of objectsOf(content).entries()) {
      const blockPlace = `${place}.content[${i}]`;
      if (!this.#isServers(block, blockPlace)) parts.push(this.#answerPart(block, blockPlace));
    }
    if (parts.length > 0) this.turns.push({ role: "assistant", parts, place });
  }

  #answerPart(block: Json, place: RequestPath): AnswerPart {
    switch (block["type"]) {
      case "text":
        return { type: "text", text: textOf(block["text"]) ?? "", cache: cacheOf(block) };
      case "thinking":
        return this.#reasoning(textOf(block["thinking"]) ?? "", textOf(block["signature"]));
      case "redacted_thinking": {
        const data = textOf(block["data"]) ?? "";
        return { type: "reasoning", text: "", isSummary: false, proof: { kind: "redacted", data } };
      }
      case "tool_use":
        return callOf(block);
      default:
        throw unknownBlock(block, place);
    }
  }

  /**
   * A signature of the gateway proves nothing to a model server. The signature may contain thinking that the client
   * asked to omit.
   */
  #reasoning(shown: string, signature: string | undefined): ReasoningPart {
    const reasoning = { type: "reasoning", text: shown, isSummary: false } as const;
    if (!signature) return reasoning;
    const kept = this.#seal.open(signature);
    if (kept === undefined) return { ...reasoning, proof: { kind: "signature", data: signature } };
    return shown === "" ? { ...reasoning, text: kept } : reasoning;
  }

  /** Only Anthropic's models cite passages of a document that they used. */
  #noteCitations({ citations }: Json, place: RequestPath): void {
    if (objectOf(citations)["enabled"] === true) this.leftOut[`${place}.citations`] = place;
  }

  /**
   * Reports whether the block calls a tool that Anthropic runs, or holds the result of one. No other server can read
   * such a block.
   */
  #isServers(block: Json, place: RequestPath): boolean {
    const type = textOf(block["type"]) ?? "";
    if (type !== "server_tool_use" && type !== "mcp_tool_use" && !/.._tool_result$/.test(type)) return false;
    for (const { tool_name } of objectsOf(objectOf(block["content"])["tool_references"])) {
      if (typeof tool_name === "string") this.loaded.add(tool_name);
    }
    this.leftOut[type] ??= place;
    return true;
  }
}

/**
 * Returns `messages` as JSON without the thinking blocks that the gateway signed, or undefined if there are none. A
 * vendor would refuse the gateway's signature as a forgery. Nothing is lost, because vendors themselves drop the
 * thinking of earlier turns. Blocks with other signatures stay.
 */
export function openedMessages({ messages }: Json, seal: Seal): { messages: string } | undefined {
  if (!Array.isArray(messages)) return undefined;
  let isChanged = false;
  const opened = messages.flatMap((message: unknown) => {
    if (!isObject(message) || message["role"] !== "assistant" || !Array.isArray(message["content"])) return [message];
    const content = message["content"].filter((block: unknown) => !isSignedByUs(block, seal));
    if (content.length === message["content"].length) return [message];
    isChanged = true;
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return isChanged ? { messages: JSON.stringify(opened) } : undefined;
}

function isSignedByUs(block: unknown, seal: Seal): boolean {
  if (!isObject(block) || block["type"] !== "thinking") return false;
  const signature = textOf(block["signature"]) || undefined;
  return signature !== undefined && seal.open(signature) !== undefined;
}

function callOf(block: Json): CallPart {
  return {
    type: "call",
    callId: textOf(block["id"]) ?? "",
    kind: "function",
    name: textOf(block["name"]) ?? "",
    input: JSON.stringify(block["input"] ?? {}),
    cache: cacheOf(block),
  };
}

function withoutAttribution([first, ...rest]: readonly Part[]): readonly Part[] {
  if (first === undefined) return rest;
  if (first.type !== "text" || !attribution.test(first.text)) return [first, ...rest];
  const text = first.text.replace(attribution, "");
  return text === "" ? rest : [{ ...first, text }, ...rest];
}
