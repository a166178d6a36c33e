// Ids for items that arrive without one, in OpenAI's format.

/** Prefixes of ids by item type. Ids of other types begin with `item`. */
const prefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  file_search_call: "fs",
  web_search_call: "ws",
  computer_call: "cu",
  computer_call_output: "cuo",
  image_generation_call: "ig",
  code_interpreter_call: "ci",
  local_shell_call: "lsh",
  local_shell_call_output: "lsho",
  shell_call: "sh",
  shell_call_output: "sho",
  apply_patch_call: "apc",
  apply_patch_call_output: "apco",
  mcp_list_tools: "mcpl",
  mcp_approval_request: "mcpr",
  mcp_approval_response: "mcpa",
  mcp_call: "mcp",
  compaction: "cmp",
};

/** Returns a new id for an item of this type. `type` may be undefined for a message. */
export function newItemId(type: unknown): string {
  const prefix = type === undefined ? "msg" : (prefixes[String(type)] ?? "item");
  return `${prefix}_${Bun.randomUUIDv7().replaceAll("-", "")}`;
}
