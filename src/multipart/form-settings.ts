// How forms are kept, and how large one may be.
import type { SpoolSpace } from "./spool-space.ts";

export interface FormSettings {
  space: SpoolSpace;
  /** Read for every request: a reload may change them. */
  limits(): FormLimits;
}

export interface FormLimits {
  /** Bytes of a form; above it: 413. */
  formBytes: number;
  /** Bytes up to which one stays in memory. */
  formMemoryBytes: number;
}
