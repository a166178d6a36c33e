// Replaces what differs from run to run by named placeholders: ids, times, durations, ports, keys and sealed texts.

const uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
/** Times this near to now belong to this run; the fixed times in requests and replies are further away. */
const nearSeconds = 90 * 86_400;

/** Values that always get the same placeholder. */
const patterns: readonly [RegExp, string][] = [
  [/\b(sk_(?:live|test|dev)_hr_)[A-Za-z0-9]{8,}/g, "$1<key>"],
  [/"last4":"\w+"/g, '"last4":"<last4>"'],
  [/(127\.0\.0\.1|localhost):\d+/g, "$1:<port>"],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?/g, "<time>"],
  [/^(traceparent: 00-[^-]+)-[0-9a-f]{16}/gm, "$1-<span>"],
  [/\b\d{4}-\d\d(?= \(UTC\))/g, "<month>"],
  [/^(openai-processing-ms|x-headrace-queue-ms|retry-after-ms|age|content-length): \d+$/gm, "$1: <number>"],
  // Shorter waits come from the model server and stay.
  [/^(retry-after: |.*\bRetry in )\d{3,}/gm, "$1<number>"],
  [/^((?:x|anthropic)-ratelimit-(?:\w+-)?reset(?:-\w+)?): .+$/gm, "$1: <duration>"],
  [/^(date): .*$/gm, "$1: <date>"],
  [/\bheadrace\/\d+\.\d+\.\d+/g, "headrace/<version>"],
  [/"version":"\d+\.\d+\.\d+"/g, '"version":"<version>"'],
  [/(?<![\w-])v1\.[\w-]{30,}/g, "<sealed>"],
];

/** Replaces the values in `text`. Equal ids get the same number, in the order of their first places. */
export function blanked(text: string): string {
  const now = Date.now() / 1000;
  const numbers = new Map<string, number>();
  const numbered = (kind: string, value: string) => {
    const key = `${kind} ${value.replaceAll("-", "")}`;
    if (!numbers.has(key)) numbers.set(key, [...numbers.keys()].filter((one) => one.startsWith(kind)).length + 1);
    return `<${kind} ${numbers.get(key)}>`;
  };
  let result = text;
  for (const [pattern, placeholder] of patterns) result = result.replace(pattern, placeholder);
  return result
    .replace(new RegExp(`(?<![0-9a-f])(?:${uuid}|[0-9a-f]{32})(?![0-9a-f])`, "g"), (id) => numbered("id", id))
    .replace(/(?<=")[\w-]{43}(?=")/g, (pseudonym) => numbered("pseudonym", pseudonym))
    .replace(/(?<![\d.])\d{10}(?![\d.])/g, (seconds) =>
      Math.abs(Number(seconds) - now) < nearSeconds ? "<seconds>" : seconds,
    );
}
