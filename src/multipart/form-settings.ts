// Settings for multipart forms: where forms are stored, and how large they may be.
import type { SpoolSpace } from "./spool-space.ts";

export interface FormSettings {
  space: SpoolSpace;
  /** Returns the current limits, which a configuration reload may change. */
  limits(): FormLimits;
}

export interface FormLimits {
  /** Maximum bytes of a form. A larger form is refused with status 413. */
  formBytes: number;
  /** Maximum bytes of a form that is kept in memory. A larger form is stored in a file. */
  formMemoryBytes: number;
}
