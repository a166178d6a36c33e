// The markers in a model's output: texts that open or close thinking, announce a tool call, or end the reply.
import type { ChatHistoryItem, ChatWrapper, ChatWrapperGeneratedContextState } from "node-llama-cpp";
import type { Library } from "../library.ts";

/** The form in which a model writes a tool call. */
export interface CallSyntax {
  /**
   * The texts that announce a call, each with the text between it and the tool's name, e.g. `<tool_call>` and
   * `\n{"name": "`.
   */
  openings: ReadonlyMap<string, string>;
  /** The same as `openings`, for the second and later calls of a reply. */
  nextOpenings: ReadonlyMap<string, string>;
  /** The text that ends the prompt if the model is forced to call a tool. */
  opening: string;
  /** The text between the name and the arguments. `{{functionName}}` stands for the name. */
  beforeArguments: string;
  /** The text after the arguments. `{{functionName}}` stands for the name. */
  afterArguments: string;
  /** The separator between two calls of one reply. */
  betweenCalls: string;
  /** True if the model may write several calls in one reply. */
  parallel: boolean;
}

export interface ReplySyntax {
  reasoningOpenings: readonly string[];
  reasoningClosings: readonly string[];
  /** True if the prompt itself opens the thinking, so that the reply begins with thinking. */
  opensReasoning: boolean;
  /** True if the prompt also opens the thinking after a tool result. */
  reopensReasoning: boolean;
  /** Texts that open the answer, for models that label every part of a reply. */
  contentOpenings: readonly string[];
  /** Texts without a meaning, which are removed from the reply. */
  dropped: readonly string[];
  /** Texts that end the reply. */
  endings: readonly string[];
  /** Texts that are removed from the start of the answer. Only the longest match is removed. */
  ignoredStarts: readonly string[];
  /**
   * The syntax of tool calls. Undefined if the chat template has no tools, or its calls cannot be told from
   * plain text.
   */
  calls: CallSyntax | undefined;
}

/** The syntax of plain completions, whose whole text is the answer. */
export const plainSyntax: ReplySyntax = {
  reasoningOpenings: [],
  reasoningClosings: [],
  opensReasoning: false,
  reopensReasoning: false,
  contentOpenings: [],
  dropped: [],
  endings: [],
  ignoredStarts: [],
  calls: undefined,
};

const probeHistory: ChatHistoryItem[] = [
  { type: "user", text: "." },
  { type: "model", response: [] },
];

/** Derives the markers from node-llama-cpp's description of the model's chat template. */
export function readReplySyntax(library: Library, wrapper: ChatWrapper, template: string): ReplySyntax {
  const state = wrapper.generateContextState({ chatHistory: probeHistory });
  const { thought, comment } = wrapper.settings.segments ?? {};
  const prefix = thought?.prefix;
  const openedByTemplate = typeof prefix === "object" && !library.isLlamaText(prefix);
  const triggers = state.prefixTriggers ?? [];
  const ofType = (type: string, segment?: string) =>
    triggers
      .filter((trigger) => trigger.type === type && (trigger.type !== "segment" || trigger.segmentType === segment))
      .flatMap((trigger) => trigger.triggers.map((text) => `${text}${trigger.inject ?? ""}`));
  const labelled = triggers.length > 0;
  const closing = asText(thought?.suffix);
  return {
    reasoningOpenings: present([openedByTemplate ? "" : trimmed(prefix), ...ofType("segment", "thought")]),
    reasoningClosings: present(labelled ? rerenders(state) : [closing, closing.trimEnd(), closing.trim()]),
    opensReasoning: openedByTemplate || thought?.openOnResponseStart === true,
    reopensReasoning: (openedByTemplate && prefix.afterFunctionCalls) || thought?.reopenAfterFunctionCalls === true,
    contentOpenings: ofType("response"),
    // Models that label the parts of a reply also write the role before the next part.
    dropped: present([
      asText(comment?.prefix),
      asText(comment?.suffix),
      ...(labelled ? ["<|start|>assistant", ...rerenders(state)] : []),
    ]),
    endings: present(state.stopGenerationTriggers.filter((text) => !isBuiltinToken(library, text)).map(withoutLineEnd)),
    ignoredStarts: (state.ignoreStartText ?? []).map(String),
    calls: /\btools\b/.test(template) ? readCallSyntax(wrapper) : undefined,
  };
}

function readCallSyntax(wrapper: ChatWrapper): CallSyntax | undefined {
  const state = wrapper.generateContextState({ chatHistory: probeHistory, availableFunctions: { probe: {} } });
  // These model families begin every reply with a call, without a text that announces it.
  if (state.functionCall?.initiallyEngaged === true || state.noPrefixTrigger?.type === "functionCall") return undefined;
  const { call } = wrapper.settings.functions;
  const parallelism = wrapper.settings.functions.parallelism?.call;
  const prefix = asText(call.prefix);
  const first = `${asText(parallelism?.sectionPrefix)}${prefix}`;
  const triggers = (state.prefixTriggers ?? []).filter((trigger) => trigger.type === "functionCall");
  const labelled = triggers.flatMap(({ triggers: texts, inject }) =>
    texts.map((text): [string, string] => [String(text), `${inject ?? ""}${prefix}`]),
  );
  const syntax = {
    beforeArguments: asText(call.paramsPrefix),
    afterArguments: asText(call.suffix),
    betweenCalls: trimmed(parallelism?.betweenCalls),
    parallel: parallelism !== undefined,
  };
  const [label] = labelled;
  if (label !== undefined) {
    const openings = new Map(labelled.map(([text, whole]) => [text, whole.slice(text.length)]));
    return { ...syntax, openings, nextOpenings: openings, opening: label[1] };
  }
  if (first.trim() === "") return undefined;
  return { ...syntax, openings: announced(first), nextOpenings: announced(prefix), opening: first };
}

/**
 * Returns the text that announces a call, with the rest of the prefix. The announcement is the tag at the start,
 * e.g. `<tool_call>`, or else the whole prefix.
 */
function announced(prefix: string): Map<string, string> {
  const text = prefix.trim();
  const announcement = /^(?:<[^<>\s]+>|\[[A-Z_]+\])/.exec(text)?.[0] ?? text;
  return new Map([[announcement, prefix.slice(prefix.indexOf(announcement) + announcement.length)]]);
}

function rerenders(state: ChatWrapperGeneratedContextState): string[] {
  return (state.rerender?.triggers ?? []).map(String);
}

/** Reports whether a text contains a built-in token such as EOS, which is recognized as a token and not as text. */
function isBuiltinToken(library: Library, text: { values: readonly unknown[] }): boolean {
  return text.values.some((value) => value instanceof library.SpecialToken);
}

function asText(text: { toString(): string } | string | undefined): string {
  return text === undefined ? "" : String(text);
}

/** Returns a text without the white space around it, because models differ in the line breaks around a tag. */
function trimmed(text: { toString(): string } | string | undefined): string {
  return asText(text).trim();
}

/** Removes the line break after an end tag. Chat templates write it, but models stop at the tag. */
function withoutLineEnd(text: { toString(): string }): string {
  return String(text).trimEnd();
}

function present(texts: readonly string[]): string[] {
  return [...new Set(texts)].filter((text) => text !== "");
}
