// Lists the parts of a translated request that servers of the Messages API may refuse.
import { type Adaptation, looseSchemas, textValue } from "../conversation/adaptations.ts";
import { isObject } from "./json.ts";

export const messageAdaptations: readonly Adaptation[] = [
  {
    path: "thinking",
    ignored: "reasoning",
    refusedValue: (value) => (isObject(value) && typeof value["type"] === "string" ? value["type"] : undefined),
    words:
      /\bthinking(?:\.type\.\w+["'`]?)? is not supported\b|\b(?:does not|doesn't) support (?:\w+ )?thinking\b|\bthinking cannot be disabled\b/i,
  },
  {
    path: "output_config.effort",
    ignored: "reasoning",
    refusedValue: textValue,
    words: /\b(?:does not|doesn't) support the effort parameter\b/i,
  },
  { path: "tools.*.strict", ignored: "strict" },
  looseSchemas(/\btools\.\d+\.custom\b.{0,400}\b(?:not supported|must be explicitly set)\b/s),
  { path: "metadata", ignored: "user", isOfClient: true },
  { path: "service_tier", ignored: "service_tier", refusedValue: textValue },
  // Servers accept cache marks at some places and refuse them at others.
  { path: "**.cache_control", ignored: "cache_control", isOnce: true },
];
