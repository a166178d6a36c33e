// What is remembered of a model server that reports what it delivers and holds to its limits: nothing.
import type { InferenceDeps } from "../../src/inference/call.ts";

export const noDoubts: InferenceDeps["usageDoubts"] = {
  usageUnderReported() {},
  limitIgnored() {},
  ignoredLimits: () => new Set(),
  ignoresLimits: () => false,
};
