// Corrects a finished response that claims to be stored although the store did not accept it.
import { editObject, scanObject } from "../../../base/text/json-text.ts";
import { lastEvent } from "./response-collector.ts";

/**
 * Returns the answer with `store` set to false and without a conversation. `answer` is a whole response, or the last
 * events of its stream. A text without a response is returned unchanged.
 */
export function unkeptResponse(answer: string): string {
  const found = lastEvent.exec(answer);
  if (!found) return answer.trimStart().startsWith("{") ? unkept(answer) : answer;
  const start = found.index + found[0].length;
  const lineEnd = answer.indexOf("\n", start);
  const end = lineEnd < 0 ? answer.length : lineEnd;
  const data = answer.slice(start, end);
  const member = scanObject(data).get("response");
  if (!member) return answer;
  const { valueStart, valueEnd } = member;
  const response = unkept(data.slice(valueStart, valueEnd));
  return answer.slice(0, start) + data.slice(0, valueStart) + response + data.slice(valueEnd) + answer.slice(end);
}

/** Sets `store` to false and `conversation` to null. A response that is not stored belongs to no conversation. */
function unkept(response: string): string {
  return editObject(response, scanObject(response), { store: "false", conversation: "null" });
}
