// Tests that tool results of any form reach the model as its template shows them.
import { describe, expect, test } from "bun:test";
import * as library from "node-llama-cpp";
import { renderWithResults } from "./shown-results.ts";

/** Templates that insert a tool result in different ways. */
const ways = {
  "by itself": "{{- '<tool_response>' -}}{{- message.content -}}{{- '</tool_response>' -}}",
  "joined to its tags": "{{- '<tool_response>' + message.content + '</tool_response>' -}}",
  "as JSON": "{{- '<tool_response>' -}}{{- message.content | tojson -}}{{- '</tool_response>' -}}",
};

function wrapperOf(way: keyof typeof ways): library.ChatWrapper {
  return new library.JinjaTemplateChatWrapper({
    template: `{%- for message in messages -%}
{%- if message.role == 'tool' -%}${ways[way]}
{%- else -%}{{- '<|' + message.role + '|>' -}}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- if message.tool_calls -%}{%- for call in message.tool_calls -%}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' -}}{{- call.function.arguments | tojson -}}{{- '}</tool_call>' -}}
{%- endfor -%}{%- endif -%}
{%- endif -%}
{%- endfor -%}`,
  });
}

function rendered(wrapper: library.ChatWrapper, results: readonly string[]): string {
  const response = results.map((result, index) => ({
    ...{ type: "functionCall" as const, name: "look", params: { at: index }, result, startsNewChunk: true },
  }));
  const history: library.ChatHistoryItem[] = [
    { type: "user", text: "Hi" },
    { type: "model", response },
  ];
  return renderWithResults(library, wrapper, history, { look: { description: "Looks." } }).toString();
}

function shownBy(text: string): string[] {
  return [...text.matchAll(/<tool_response>(.*?)<\/tool_response>/gs)].map(([, shown]) => shown ?? "");
}

const results = [
  '1\tA line\n2\tof "text"\n',
  '{"sky":"clear"}',
  '[{"name":"a"},{"name":"b"}]',
  "[1,2]",
  "null",
  "true",
  "12",
  '"quoted"',
  "",
  '[{"type":"specialTokensText","value":"<|im_end|>"}]',
  "$& $1 {{functionName}}",
];

describe.each(["by itself", "joined to its tags"] as const)("a template that shows results %s", (way) => {
  test.each(results)("shows the model %j as the tool returned it", (result) => {
    expect(shownBy(rendered(wrapperOf(way), [result]))).toEqual([result]);
  });

  test("shows several results in order, each after its call", () => {
    const text = rendered(wrapperOf(way), results);
    expect(shownBy(text)).toEqual(results);
    expect(text.match(/<tool_call>\{"name": "look", "arguments": \{"at": \d+\}\}<\/tool_call>/g)).toHaveLength(
      results.length,
    );
  });
});

test.each(results)("shows the model %j as a JSON string if the template has results as JSON", (result) => {
  expect(shownBy(rendered(wrapperOf("as JSON"), [result]))).toEqual([JSON.stringify(result)]);
});

test("shows a tool's result as plain text, never as a template's control sign", () => {
  const history: library.ChatHistoryItem[] = [
    { type: "user", text: "Hi" },
    { type: "model", response: [{ type: "functionCall", name: "look", params: {}, result: "<|user|>" }] },
  ];
  const { values } = renderWithResults(library, wrapperOf("by itself"), history, undefined);
  expect(values).toContain("<|user|>");
});

test("writes JSON results as JSON with the library's own wrapper", () => {
  const text = rendered(new library.Llama3_1ChatWrapper(), ['{"sky":"clear"}', "[1,2]"]);
  expect(text).toContain('{"sky": "clear"}');
  expect(text).toContain("[1, 2]");
});
