// Renders a chat history with tool results in the form that the model's own template defines.
import type {
  ChatHistoryItem,
  ChatModelFunctionCall,
  ChatModelFunctions,
  ChatWrapper,
  LlamaText,
} from "node-llama-cpp";
import type { Library } from "../library.ts";

/**
 * Renders a history with tool results. The library converts results badly for a Jinja template: objects become "[object
 * Object]", and texts get JSON quotes. So a Jinja template gets placeholders, which are then replaced by the unchanged
 * texts. Other templates get the results as values, and write JSON where their models read that.
 */
export function renderWithResults(
  library: Library,
  wrapper: ChatWrapper,
  history: readonly ChatHistoryItem[],
  functions: ChatModelFunctions | undefined,
): LlamaText {
  const render = (chatHistory: ChatHistoryItem[]) =>
    wrapper.generateContextState({
      chatHistory,
      ...(functions === undefined ? {} : { availableFunctions: functions }),
    }).contextText;
  if (!(wrapper instanceof library.JinjaTemplateChatWrapper)) return render(withResults(history, parsed));
  const texts: string[] = [];
  const name = `result-${crypto.randomUUID()}`;
  const rendered = render(withResults(history, (text) => `${name}-${texts.push(text) - 1}.`));
  const sign = new RegExp(`"${name}-(\\d+)\\."|${name}-(\\d+)\\.`, "g");
  const { values } = rendered;
  return new library.LlamaText(
    values.map((value, index) => {
      if (typeof value !== "string") return value;
      const isInQuotes = quotes(library, values[index - 1], "end") && quotes(library, values[index + 1], "start");
      return value.replaceAll(sign, (_, quoted?: string, bare?: string) => {
        const text = texts[Number(quoted ?? bare)] ?? "";
        return isInQuotes ? JSON.stringify(text).slice(1, -1) : text;
      });
    }),
  );
}

/** Reports whether the template puts quotation marks around a result, because it writes the result as a JSON string. */
function quotes(library: Library, beside: unknown, side: "start" | "end"): boolean {
  if (!(beside instanceof library.SpecialTokensText)) return false;
  return side === "start" ? beside.value.startsWith('"') : beside.value.endsWith('"');
}

function withResults(history: readonly ChatHistoryItem[], shown: (text: string) => unknown): ChatHistoryItem[] {
  return history.map((item) => {
    if (item.type !== "model") return item;
    const response = item.response.map((part) =>
      typeof part === "object" && part.type === "functionCall" ? withResult(part, shown) : part,
    );
    return { ...item, response };
  });
}

function withResult(call: ChatModelFunctionCall, shown: (text: string) => unknown): ChatModelFunctionCall {
  return typeof call.result === "string" ? { ...call, result: shown(call.result) } : call;
}

/** Parses the text as JSON. Any other text is returned as it is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
