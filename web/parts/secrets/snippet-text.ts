// Writes a chat request as runnable code: curl, Python, TypeScript, and the headrace command line.

interface SnippetMessage {
  role: string;
  /** Text, or content parts of the API. */
  content: unknown;
}

export interface SnippetRequest {
  /** The address of the API, which ends in /v1. */
  baseUrl: string;
  model: string;
  messages: readonly SnippetMessage[];
  /** Further members of the request, named as in the API; undefined ones are left out. */
  parameters?: Readonly<Record<string, unknown>> | undefined;
  stream?: boolean | undefined;
  /** Written into the code literally; if absent, the code reads OPENAI_API_KEY from its environment. */
  apiKey?: string | undefined;
}

interface Snippet {
  name: "curl" | "Python" | "TypeScript" | "Command line";
  code: string;
}

/**
 * The variable that the SDKs read. The headrace command reads another variable, so that the command never sends another
 * service's key.
 */
const keyVariable = "OPENAI_API_KEY";
const commandKeyVariable = "HEADRACE_API_KEY";

export function snippetsOf(request: SnippetRequest): Snippet[] {
  return [
    { name: "curl", code: curlOf(request) },
    { name: "Python", code: pythonOf(request) },
    { name: "TypeScript", code: typescriptOf(request) },
    { name: "Command line", code: commandOf(request) },
  ];
}

function curlOf({ baseUrl, model, messages, parameters, stream, apiKey }: SnippetRequest): string {
  const body = { model, messages, ...given(parameters), ...(stream ? { stream } : {}) };
  return [
    ...exported(apiKey),
    `curl ${stream ? "--no-buffer " : ""}${shellWord(`${baseUrl}/chat/completions`)} \\`,
    `  -H "Authorization: Bearer $${keyVariable}" \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d ${shellWord(literal({ ...body }, json, "  "))}`,
  ].join("\n");
}

function pythonOf({ baseUrl, model, messages, parameters, stream, apiKey }: SnippetRequest): string {
  const key = apiKey === undefined ? `os.environ["${keyVariable}"]` : literal(apiKey, python, "");
  const { own, foreign } = byOrigin(given(parameters));
  const named = { model, messages, ...own, ...(stream ? { stream } : {}) };
  const all = Object.keys(foreign).length === 0 ? named : { ...named, extra_body: foreign };
  const last = stream
    ? [
        "for chunk in answer:",
        "    if chunk.choices:",
        '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
        "print()",
      ]
    : ["print(answer.choices[0].message.content)"];
  return [
    "# pip install openai",
    ...(apiKey === undefined ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    "client = OpenAI(",
    `    base_url=${literal(baseUrl, python, "")},`,
    `    api_key=${key},`,
    ")",
    "answer = client.chat.completions.create(",
    ...Object.entries(all).map(([name, value]) => `    ${name}=${literal(value, python, "    ")},`),
    ")",
    ...last,
  ].join("\n");
}

function typescriptOf({ baseUrl, model, messages, parameters, stream, apiKey }: SnippetRequest): string {
  const key = apiKey === undefined ? `process.env.${keyVariable}` : literal(apiKey, typescript, "");
  const { own, foreign } = byOrigin(given(parameters));
  const named = { model, messages, ...own, ...(stream ? { stream } : {}) };
  const last = stream
    ? ["for await (const chunk of answer) {", '  process.stdout.write(chunk.choices[0]?.delta.content ?? "");', "}"]
    : ["console.log(answer.choices[0]?.message.content);"];
  return [
    "// npm install openai",
    'import OpenAI from "openai";',
    "",
    "const client = new OpenAI({",
    `  baseURL: ${literal(baseUrl, typescript, "")},`,
    `  apiKey: ${key},`,
    "});",
    "const answer = await client.chat.completions.create({",
    ...Object.entries(named).map(([name, value]) => `  ${name}: ${literal(value, typescript, "  ")},`),
    // Written as spreads, because the SDK's types lack these parameters and TypeScript does not check spread members.
    ...Object.entries(foreign).map(([name, value]) => `  ...${literal({ [name]: value }, typescript, "  ")},`),
    "});",
    ...last,
  ].join("\n");
}

/** Writes one question with the command's options; parameters without an option become a comment. */
function commandOf({ baseUrl, model, messages, parameters, stream, apiKey }: SnippetRequest): string {
  const { temperature, max_tokens, max_completion_tokens, store, ...others } = given(parameters);
  const system = messages.filter(({ role }) => role === "system" || role === "developer");
  const turns = messages.filter(({ role }) => role !== "system" && role !== "developer");
  const prompt = textOf(turns.findLast(({ role }) => role === "user")?.content);
  const words = [
    "headrace chat",
    `--model ${shellWord(model)}`,
    ...(system.length > 0 ? [`--system ${shellWord(system.map(({ content }) => textOf(content)).join("\n\n"))}`] : []),
    ...(temperature === undefined ? [] : [`--temperature ${shellWord(String(temperature))}`]),
    ...[max_completion_tokens ?? max_tokens].flatMap((most) =>
      most === undefined || most === null ? [] : [`--max-tokens ${shellWord(String(most))}`],
    ),
    ...(store === true ? ["--store"] : []),
    ...(stream === false ? ["--no-stream"] : []),
    // After `--`, a prompt that begins with a dash is no option; a lone dash would still mean standard input.
    ...(prompt === "" ? [] : [`${prompt.startsWith("-") ? "-- " : ""}${shellWord(prompt === "-" ? " -" : prompt)}`]),
  ];
  const unsaid = [...(turns.length > 1 ? ["earlier messages"] : []), ...Object.keys(others)];
  return [
    ...(unsaid.length > 0 ? [`# Left out, because the command has no option for it: ${unsaid.join(", ")}.`] : []),
    `export HEADRACE_BASE_URL=${shellWord(baseUrl)}`,
    `export ${commandKeyVariable}=${apiKey === undefined ? `"$${keyVariable}"` : shellWord(apiKey)}`,
    words.join(" \\\n  "),
  ].join("\n");
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part: { text?: unknown }) => (typeof part.text === "string" ? [part.text] : [])).join("\n");
}

function exported(apiKey: string | undefined): string[] {
  return apiKey === undefined ? [] : [`export ${keyVariable}=${shellWord(apiKey)}`];
}

function given(parameters: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined));
}

/** Parameters that the openai packages accept by name; others go through `extra_body` or a spread. */
const ownNames = new Set([
  ...["audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata"],
  ...[
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
  ],
  ...["seed", "service_tier", "stop", "store", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs"],
  ...["top_p", "user", "verbosity"],
]);

function byOrigin(parameters: Record<string, unknown>) {
  const entries = Object.entries(parameters);
  return {
    own: Object.fromEntries(entries.filter(([name]) => ownNames.has(name))),
    foreign: Object.fromEntries(entries.filter(([name]) => !ownNames.has(name))),
  };
}

const controls = /[\p{Cc}]/gu;

/** Quotes any text as one word of a POSIX shell. NUL, which no argument can hold, is left out. */
export function shellWord(text: string): string {
  const word = text.replaceAll("\0", "").replaceAll("\r\n", "\n");
  if (word !== "" && /^[\w./:@%+,=-]+$/.test(word)) return word;
  const strange = word.match(controls)?.some((one) => one !== "\n" && one !== "\t");
  if (!strange) return `'${word.replaceAll("'", "'\\''")}'`;
  // Control characters are written with printf, because a terminal would act on pasted ones.
  const bytes = [...new TextEncoder().encode(word)];
  const format = bytes.map((byte) =>
    /[\w ./:@+,=-]/.test(String.fromCharCode(byte))
      ? String.fromCharCode(byte)
      : `\\${byte.toString(8).padStart(3, "0")}`,
  );
  return `"$(printf '${format.join("")}')"`;
}

interface Style {
  words: Record<"true" | "false" | "null", string>;
  name(text: string): string;
  /** The space within the braces of a one-line object. */
  pad: string;
  /** The trailing comma of a multi-line list. */
  comma: string;
  indent: string;
}

const plainWords = { true: "true", false: "false", null: "null" };
const json: Style = { words: plainWords, name: quoted, pad: " ", comma: "", indent: "  " };
const python: Style = {
  words: { true: "True", false: "False", null: "None" },
  name: quoted,
  pad: "",
  comma: ",",
  indent: "    ",
};
const typescript: Style = {
  words: plainWords,
  name: (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : quoted(text)),
  pad: " ",
  comma: ",",
  indent: "  ",
};

/** JSON's string escapes are valid in Python and TypeScript too. DEL and the C1 controls are escaped for terminals. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(controls, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const lineWidth = 88;

function literal(value: unknown, style: Style, indent: string): string {
  if (value === null || value === undefined) return style.words.null;
  if (typeof value === "boolean") return style.words[`${value}`];
  if (typeof value === "string") return quoted(value);
  if (typeof value !== "object") return JSON.stringify(value) ?? style.words.null;
  const isList = Array.isArray(value);
  const inner = indent + style.indent;
  const write = (within: string) =>
    isList
      ? value.map((item: unknown) => literal(item, style, within))
      : Object.entries(value)
          .filter(([, item]) => item !== undefined)
          .map(([name, item]) => `${style.name(name)}: ${literal(item, style, within)}`);
  const [open, close, pad] = isList ? ["[", "]", ""] : ["{", "}", style.pad];
  const items = write(inner);
  if (items.length === 0) return open + close;
  const line = `${open}${pad}${items.join(", ")}${pad}${close}`;
  if (!line.includes("\n") && indent.length + line.length <= lineWidth) return line;
  return `${open}\n${items.map((item) => inner + item).join(",\n")}${style.comma}\n${indent}${close}`;
}
