// The data of the last event in a stream of chat completions. Some model servers of other formats send this event too.

export const endMark = "[DONE]";
const maxMarkLength = 16;
const anyMark = /^\s*\[?done\]?\s*$/i;

/** Reports whether `data` is the end mark, in upper or lower case, with or without blanks and brackets around it. */
export function isEndMark(data: string): boolean {
  return data === endMark || (data.length <= maxMarkLength && anyMark.test(data));
}
