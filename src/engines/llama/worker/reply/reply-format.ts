// The form of a model's output: which texts open and close thinking, announce a tool call, or end the reply.
import type { ChatHistoryItem, ChatWrapper, ChatWrapperGeneratedContextState } from "node-llama-cpp";
import type { Library } from "../library.ts";

/** The form in which a model writes a tool call. */
export interface CallSyntax {
  /** Each text that announces a call, with the text before the name, e.g. `<tool_call>` and `\n{"name": "`. */
  openings: ReadonlyMap<string, string>;
  /** The texts that announce a second or later call of a reply. */
  nextOpenings: ReadonlyMap<string, string>;
  /** The beginning of a call in the prompt, if the model is forced to call. */
  opening: string;
  /** The text between the name and the arguments. `{{functionName}}` stands for the name. */
  beforeArguments: string;
  /** The text after the arguments. `{{functionName}}` stands for the name. */
  afterArguments: string;
  /** The text between two calls of one reply, which has no meaning of its own. */
  betweenCalls: string;
  /** True if the model may write several calls in one reply. */
  parallel: boolean;
}

export interface ReplySyntax {
  reasoningOpenings: readonly string[];
  reasoningClosings: readonly string[];
  /** True if the prompt itself opens the thinking, so that the reply begins within it. */
  opensReasoning: boolean;
  /** True if the prompt opens the thinking of a reply that follows a tool's result. */
  reopensReasoning: boolean;
  /** Texts that open the actual answer, for models that label every part of the reply. */
  contentOpenings: readonly string[];
  /** Syntax without a meaning, which is removed. */
  dropped: readonly string[];
  /** Texts that end the reply. */
  endings: readonly string[];
  /** Texts that are removed from the very start of the answer. The longest match is removed. */
  ignoredStarts: readonly string[];
  /**
   * The syntax of tool calls. Undefined if the model's template knows no tools, or writes calls in a way that cannot be
   * told from text.
   */
  calls: CallSyntax | undefined;
}

/** The syntax of plain completions: all text is the answer. */
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

/** Derives the syntax from the library's description of the model's chat template. */
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
    // Models that label the parts of a reply also write the role between two parts.
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
  // These families begin every reply with a call or something like it, and nothing announces a call.
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
 * Returns the texts that announce a call, with the rest of its prefix. The announcement is the part of the prefix that
 * the model surely writes exactly: its tag, e.g. `<tool_call>`, if it has one, or else all of it.
 */
function announced(prefix: string): Map<string, string> {
  const text = prefix.trim();
  const announcement = /^(?:<[^<>\s]+>|\[[A-Z_]+\])/.exec(text)?.[0] ?? text;
  return new Map([[announcement, prefix.slice(prefix.indexOf(announcement) + announcement.length)]]);
}

function rerenders(state: ChatWrapperGeneratedContextState): string[] {
  return (state.rerender?.triggers ?? []).map(String);
}

/**
 * Reports whether a text has a built-in token such as EOS or EOT. These have no text here, because they are recognized
 * as tokens.
 */
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

/** Removes the line break that Jinja templates put after the tag that ends a turn: the model ends with the tag. */
function withoutLineEnd(text: { toString(): string }): string {
  return String(text).trimEnd();
}

function present(texts: readonly string[]): string[] {
  return [...new Set(texts)].filter((text) => text !== "");
}
