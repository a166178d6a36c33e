// Settings of forms: where they are buffered, and how large a form may be.
import type { SpoolSpace } from "./spool-space.ts";

export interface FormSettings {
  space: SpoolSpace;
  /** Reads the limits for every request, because a reload may change them. */
  limits(): FormLimits;
}

export interface FormLimits {
  /** Maximum bytes of a form. A larger form is refused with 413. */
  formBytes: number;
  /** Bytes up to which a form stays in memory. */
  formMemoryBytes: number;
}
