// The parameters of a chat. A parameter that the user did not set is left out, so that the model's default applies.
import type { TypedNumber } from "../../parts/editing/typed-number.ts";

export interface NumberParameter {
  name: "temperature" | "top_p" | "max_tokens" | "frequency_penalty" | "presence_penalty" | "seed";
  label: string;
  hint: string;
  /** The lowest and the highest value that the API accepts. */
  min: number;
  max: number;
  step: number;
  whole?: boolean;
}

const penalty = { hint: "-2 to 2", min: -2, max: 2, step: 0.1 };

export const numberParameters: readonly NumberParameter[] = [
  { name: "temperature", label: "Temperature", hint: "0 = focused, 2 = random", min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "Top P", hint: "0 to 1", min: 0.01, max: 1, step: 0.05 },
  {
    ...{ name: "max_tokens", label: "Max tokens", hint: "Maximum answer length", whole: true },
    ...{ min: 1, max: 10_000_000, step: 64 },
  },
  { name: "frequency_penalty", label: "Frequency penalty", ...penalty },
  { name: "presence_penalty", label: "Presence penalty", ...penalty },
  {
    ...{ name: "seed", label: "Seed", hint: "For repeatable answers", whole: true },
    ...{ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, step: 1 },
  },
];

export type Numbers = Readonly<Partial<Record<NumberParameter["name"], TypedNumber | undefined>>>;

export interface Settings {
  system: string;
  numbers: Numbers;
  /** Stop sequences as they are typed: `\n` stands for a line break. */
  stop: readonly string[];
  /** True if the chat is to be stored; undefined means the account's setting. */
  store: boolean | undefined;
  /** The names of the tools that the model may call. */
  tools: readonly string[];
}

export const untouched: Settings = { system: "", numbers: {}, stop: [], store: undefined, tools: [] };
export const maxStops = 16;

/** Returns the parameters as members of the request. */
export function parametersOf({ numbers, stop, store }: Settings): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const { name } of numberParameters) {
    const value = Number(numbers[name] ?? Number.NaN);
    // An incomplete number, such as a lone minus, is left out too.
    if (Number.isFinite(value)) given[name] = value;
  }
  if (stop.length > 0) given["stop"] = stop.map((text) => text.replaceAll("\\n", "\n").replaceAll("\\t", "\t"));
  if (store !== undefined) given["store"] = store;
  return given;
}
