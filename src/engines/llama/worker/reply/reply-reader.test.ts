import { expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import { plainSyntax, readReplySyntax } from "./reply-format.ts";
import { type ReplyEvent, type ReplyOptions, ReplyReader } from "./reply-reader.ts";

const weather = { name: "get_weather", grammar: "WEATHER" };
const clock = { name: "get_time", grammar: "TIME" };

/** Returns options in which the state of a grammar is the grammar's text, so that a test sees which grammar applies. */
function options(changes: Partial<ReplyOptions<string>>): ReplyOptions<string> {
  return {
    syntax: plainSyntax,
    stops: [],
    startsInReasoning: false,
    continuesText: false,
    answerGrammar: undefined,
    tools: [],
    startsInCall: false,
    parallelCalls: true,
    startGrammar: (grammar) => grammar,
    ...changes,
  };
}

/** Reads pieces as tokens, where `<|…|>` is a control token. Returns a short transcript. */
function read(reader: ReplyReader<string>, pieces: string[]): string[] {
  const events: ReplyEvent[] = [];
  for (const text of pieces) {
    if (reader.ended) break;
    events.push(...reader.read([{ text, hidden: /^<\|[^|]*\|>$/.test(text) }]));
  }
  events.push(...reader.finish());
  const lines: string[] = [];
  let last = "";
  for (const event of events) {
    const label = event.kind === "call" ? `call ${event.index} ${event.name}` : event.kind;
    if (event.kind === "call") lines.push(label);
    else if (label === last) lines.push(`${lines.pop()}${event.text}`);
    else lines.push(`${label}: ${event.text}`);
    last = label;
  }
  return lines;
}

function characters(text: string): string[] {
  return text.split(/(<\|[^|]*\|>)/).flatMap((part) => (part.startsWith("<|") ? [part] : [...part]));
}

const qwen = readReplySyntax(library, new library.QwenChatWrapper(), "{{ tools }}");
const harmony = readReplySyntax(library, new library.HarmonyChatWrapper(), "{{ tools }}");

test("lets text steer the next token only with stop texts, a grammar or calls", () => {
  const steers = (changes: Partial<ReplyOptions<string>>) => new ReplyReader(options(changes)).steers;
  expect(steers({ stops: ["END"] })).toBe(true);
  expect(steers({ answerGrammar: "ANSWER" })).toBe(true);
  expect(steers({ syntax: qwen, tools: [weather] })).toBe(true);
  expect(steers({ syntax: qwen })).toBe(false);
  expect(steers({ tools: [weather] })).toBe(false);
  expect(steers({ syntax: harmony, startsInReasoning: true })).toBe(false);
});

test("ends a reply at a stop text and leaves the text out, across token borders", () => {
  const reader = new ReplyReader(options({ stops: ["END"] }));
  expect(read(reader, ["one E", "N", "D two"])).toEqual(["text: one "]);
  expect(reader.ended).toBe(true);
});

test("delivers the beginning of a stop text if the reply ends there", () => {
  const reader = new ReplyReader(options({ stops: ["END"] }));
  expect(read(reader, ["one EN"])).toEqual(["text: one EN"]);
});

test("separates thinking from the answer and drops the white space between them", () => {
  const reader = new ReplyReader(options({ syntax: qwen }));
  const reply = "<think>\nHm, 3.\n</think>\n\nIt is 3.";
  expect(read(reader, characters(reply))).toEqual(["reasoning: Hm, 3.", "text: It is 3."]);
});

test("treats a reply that starts inside the thinking as thinking until its end", () => {
  const reader = new ReplyReader(options({ syntax: qwen, startsInReasoning: true, stops: ["3"] }));
  expect(read(reader, characters("Hm, 3.</think>No 3"))).toEqual(["reasoning: Hm, 3.", "text: No "]);
});

test("applies a grammar to the answer only, not to the thinking before it", () => {
  const reader = new ReplyReader(options({ syntax: qwen, startsInReasoning: true, answerGrammar: 'root ::= "x"' }));
  expect(reader.grammar).toBeUndefined();
  read(reader, characters("Hm.</think>"));
  expect(reader.grammar).toBe('root ::= "x"');
});

test("allows a tool call as an alternative to the answer's grammar", () => {
  const reader = new ReplyReader(
    options({ syntax: qwen, tools: [weather], answerGrammar: 'root ::= "x"\nr0 ::= "y"' }),
  );
  expect(reader.grammar).toBe('root ::= ("x") | "<tool_call>"\nr0 ::= "y"');
});

test("recognizes a tool call by its tag, constrains its name, and ends it with the arguments", () => {
  const reader = new ReplyReader(options({ syntax: qwen, tools: [weather, clock] }));
  expect(reader.read([{ text: "Look: <tool_call>", hidden: false }])).toEqual([{ kind: "text", text: "Look: " }]);
  expect(reader.grammar).toContain('get_weather\\", \\"arguments\\": ');
  expect(reader.read([{ text: '\n{"name": "get_weather", "arguments": ', hidden: false }])).toMatchObject([
    { kind: "call", index: 0, name: "get_weather" },
  ]);
  expect(reader.grammar).toBe("WEATHER");
  expect(read(reader, ['{"city": "Os}', 'lo"', "}"])).toEqual(['arguments: {"city": "Os}lo"}']);
  expect(reader.calledTools).toBe(true);
});

test("reads consecutive calls, and ends the reply at text after a call", () => {
  const reader = new ReplyReader(options({ syntax: qwen, tools: [weather, clock] }));
  const call = (name: string) => ["<tool_call>", `\n{"name": "${name}", "arguments": `, "{}"];
  const transcript = read(reader, [...call("get_weather"), "\n", ...call("get_time"), "\n", "Done.", "More."]);
  expect(transcript).toEqual(["call 0 get_weather", "arguments: {}", "call 1 get_time", "arguments: {}"]);
  expect(reader.ended).toBe(true);
});

test("inserts the rest of the call syntax for the model after a call", () => {
  const reader = new ReplyReader(options({ syntax: qwen, tools: [clock] }));
  reader.read([{ text: "<tool_call>", hidden: false }]);
  reader.read([{ text: '\n{"name": "get_time", "arguments": ', hidden: false }]);
  expect(reader.takeInjection()).toBe("");
  reader.read([{ text: "{}", hidden: false }]);
  expect(reader.takeInjection()).toBe("}\n</tool_call>");
  expect(reader.takeInjection()).toBe("");
});

test("ends the reply after the first call without parallel calls", () => {
  const reader = new ReplyReader(options({ syntax: qwen, tools: [clock], parallelCalls: false }));
  read(reader, ["<tool_call>", '\n{"name": "get_time", "arguments": ', "{}", "<tool_call>"]);
  expect(reader.ended).toBe(true);
});

test("starts a forced call at the name", () => {
  const reader = new ReplyReader(options({ syntax: qwen, tools: [clock], startsInCall: true }));
  expect(reader.grammar).toBe('root ::= "get_time\\", \\"arguments\\": "');
  expect(read(reader, ['get_time", "argu', 'ments": ', "{}"])).toEqual(["call 0 get_time", "arguments: {}"]);
});

test("waits for the longer of two tool names while both are possible", () => {
  const syntax = { ...qwen, calls: qwen.calls && { ...qwen.calls, beforeArguments: "(" } };
  const tools = [
    { name: "get", grammar: "A" },
    { name: "get_all", grammar: "B" },
  ];
  const reader = new ReplyReader(options({ syntax, tools, startsInCall: true }));
  expect(read(reader, ["get", "_all", "(", "{}"])).toEqual(["call 0 get_all", "arguments: {}"]);
});

test("treats a call tag without a tool as text", () => {
  const syntax = { ...qwen, calls: qwen.calls && { ...qwen.calls, openings: new Map([["call:", " "]]) } };
  const reader = new ReplyReader(options({ syntax, tools: [clock] }));
  expect(read(reader, ["call: nobody, please"])).toEqual(["text: call: nobody, please"]);
});

test("treats call syntax as text without tools", () => {
  const reader = new ReplyReader(options({ syntax: qwen }));
  expect(read(reader, ["<tool_call>"])).toEqual(["text: <tool_call>"]);
});

test("reads the analysis of a labelled reply as thinking, and the final part as the answer", () => {
  const reader = new ReplyReader(options({ syntax: harmony }));
  const reply =
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It is 3.<|return|>more";
  expect(read(reader, characters(reply))).toEqual(["reasoning: Hm.", "text: It is 3."]);
  expect(reader.ended).toBe(true);
});

test("reads a call in the commentary of a labelled reply as a tool call", () => {
  const reader = new ReplyReader(options({ syntax: harmony, tools: [weather] }));
  const announcement = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=";
  const before = characters(announcement).flatMap((text) => reader.read([{ text, hidden: text.startsWith("<|") }]));
  expect(before.map((event) => event.kind)).toEqual(["reasoning", "reasoning", "reasoning"]);
  expect(reader.grammar).toBe('root ::= "functions.get_weather<|constrain|>json<|message|>"');
});

test("applies the answer's grammar of a labelled reply after the label", () => {
  const reader = new ReplyReader(options({ syntax: harmony, answerGrammar: 'root ::= "x"' }));
  read(reader, characters("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"));
  expect(reader.grammar).toBeUndefined();
  const answering = new ReplyReader(options({ syntax: harmony, answerGrammar: 'root ::= "x"' }));
  for (const text of characters("<|channel|>final<|message|>"))
    answering.read([{ text, hidden: text.startsWith("<|") }]);
  expect(answering.grammar).toBe('root ::= "x"');
});

test("offers no tools to a model family whose calls resemble text", () => {
  expect(readReplySyntax(library, new library.FunctionaryChatWrapper(), "{{ tools }}").calls).toBeUndefined();
  expect(readReplySyntax(library, new library.MuseChatWrapper(), "{{ tools }}").calls).toBeUndefined();
});

test("ends a reply at an end text only with the line break before it", () => {
  const falcon = readReplySyntax(library, new library.FalconChatWrapper(), "");
  const reader = new ReplyReader(options({ syntax: falcon }));
  expect(read(reader, ["A User: is not it.", "\nUser: is."])).toEqual(["text: A User: is not it."]);
});

test("finds no call syntax in a template without tools", () => {
  expect(readReplySyntax(library, new library.QwenChatWrapper(), "{{ messages }}").calls).toBeUndefined();
});

test("drops ignored spaces of a template only at the start", () => {
  const reader = new ReplyReader(options({ syntax: { ...plainSyntax, ignoredStarts: [" ", "  "] } }));
  expect(read(reader, [" ", " ", "a", "  b"])).toEqual(["text: a  b"]);
});

test("drops no leading space of a reply that continues a text", () => {
  const syntax = { ...plainSyntax, ignoredStarts: [" "] };
  for (const continuesText of [false, true]) {
    const reader = new ReplyReader(options({ syntax, continuesText }));
    const events = [...reader.read([{ text: " and", hidden: false }]), ...reader.finish()];
    expect(events).toEqual([{ kind: "text", text: continuesText ? " and" : "and" }]);
  }
});
