// Describes tools that the client runs and whose input only Anthropic's models know. All other models need this
// description.
import type { Json } from "./json.ts";

/** The description and schema of a client tool, for a model that does not know the tool. */
export interface ClientTool {
  readonly description: string;
  readonly parameters: Json;
}

const text = { type: "string" };
const whole = { type: "integer" };

/**
 * Finds a tool by its kind and the date of its version, such as `bash_20250124`. Returns undefined for any other tool.
 * The inputs are documented in platform.claude.com/docs/en/agents-and-tools/tool-use (bash-tool, text-editor-tool,
 * memory-tool, computer-use-tool), and in the schemas of @ai-sdk/anthropic 4.0.105.
 */
export function clientToolOf(tool: Json): ClientTool | undefined {
  const [, kind, version = ""] = /^(bash|text_editor|memory|computer)_(\d{8})$/.exec(String(tool["type"])) ?? [];
  switch (kind) {
    case "bash":
      return bash;
    case "text_editor":
      return textEditor(version);
    case "memory":
      return memory;
    case "computer":
      return computer(version, tool);
    default:
      return undefined;
  }
}

const bash: ClientTool = {
  description: "Runs a command in a bash session that lasts from call to call, and gives what it printed.",
  parameters: {
    type: "object",
    properties: {
      command: { ...text, description: "The command; needed unless the session is restarted." },
      restart: { type: "boolean", description: "true: the session begins anew." },
    },
  },
};

const path = { ...text, description: "Absolute path of a file or directory." };
const viewRange = {
  type: "array",
  items: whole,
  minItems: 2,
  maxItems: 2,
  description: "Of `view`: first and last line of a file, counted from 1; -1 as the last means its end.",
};

/**
 * The first versions have a command that undoes an edit. In later versions, the member with the text to insert is named
 * `insert_text`.
 */
function textEditor(version: string): ClientTool {
  const isFirst = version < "20250429";
  const inserted = isFirst ? "new_str" : "insert_text";
  return {
    description: "Views, creates and edits text files.",
    parameters: {
      type: "object",
      properties: {
        command: { ...text, enum: ["view", "create", "str_replace", "insert", ...(isFirst ? ["undo_edit"] : [])] },
        path,
        file_text: { ...text, description: "Of `create`: the content of the file." },
        old_str: {
          ...text,
          description: "Of `str_replace`: the text to replace, exactly as it stands in the file, once.",
        },
        new_str: { ...text, description: `Of \`str_replace\`${isFirst ? " and `insert`" : ""}: the new text.` },
        insert_line: {
          ...whole,
          description: `Of \`insert\`: \`${inserted}\` goes after this line; 0: to the beginning.`,
        },
        ...(isFirst ? {} : { insert_text: { ...text, description: "Of `insert`: the text." } }),
        view_range: viewRange,
      },
      required: ["command", "path"],
    },
  };
}

const memory: ClientTool = {
  description:
    "Keeps files below /memories from one conversation to the next. View that directory before a task, and write down what will be of use later.",
  parameters: {
    type: "object",
    properties: {
      command: { ...text, enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
      path: { ...text, description: "Path below /memories; of all commands but `rename`." },
      view_range: viewRange,
      file_text: { ...text, description: "Of `create`: the content of the file." },
      old_str: { ...text, description: "Of `str_replace`: the text to replace." },
      new_str: { ...text, description: "Of `str_replace`: the new text." },
      insert_line: { ...whole, description: "Of `insert`: `insert_text` goes after this line." },
      insert_text: { ...text, description: "Of `insert`: the text." },
      old_path: { ...text, description: "Of `rename`: the path as it is." },
      new_path: { ...text, description: "Of `rename`: the path as it shall be." },
    },
    required: ["command"],
  },
};

const firstActions = [
  ...["key", "type", "cursor_position", "mouse_move", "left_click", "left_click_drag", "right_click"],
  ...["middle_click", "double_click", "screenshot"],
];
const laterActions = ["hold_key", "left_mouse_down", "left_mouse_up", "triple_click", "scroll", "wait"];
const point = { type: "array", items: whole, minItems: 2, maxItems: 2 };

function computer(version: string, { display_width_px, display_height_px, enable_zoom }: Json): ClientTool {
  const isLater = version >= "20250124";
  const zooms = version >= "20251124" && enable_zoom === true;
  const size = `${String(display_width_px)} by ${String(display_height_px)} pixels`;
  const actions = [...firstActions, ...(isLater ? laterActions : []), ...(zooms ? ["zoom"] : [])];
  const later = {
    duration: { type: "number", description: "Of `hold_key` and `wait`: seconds." },
    scroll_direction: { ...text, enum: ["up", "down", "left", "right"] },
    scroll_amount: { ...whole, description: "Of `scroll`: clicks of the wheel." },
    start_coordinate: { ...point, description: "Of `left_click_drag`: where it begins, as x and y." },
  };
  return {
    description: `Controls mouse and keyboard of a computer whose screen has ${size}, and takes screenshots of it.`,
    parameters: {
      type: "object",
      properties: {
        action: { ...text, enum: actions },
        coordinate: { ...point, description: "Where, as x and y from the upper left corner." },
        text: { ...text, description: "What `type` types; the keys of `key` and `hold_key`, such as `ctrl+s`." },
        ...(isLater ? later : {}),
        ...(zooms
          ? {
              region: {
                type: "array",
                items: whole,
                minItems: 4,
                maxItems: 4,
                description: "Of `zoom`: x and y of two corners.",
              },
            }
          : {}),
      },
      required: ["action"],
    },
  };
}
