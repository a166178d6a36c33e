// A form (multipart/form-data) as it is sent to an engine: written anew from what was understood of its client's form.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** A form that was read, and is kept until its request is over. */
export interface KeptForm {
  /**
   * The form with `model` as the id of its model. `edits`: JSON in place of what fields of these names say; null: nothing
   * is said there.
   */
  sentFor(model: string, edits?: Readonly<Record<string, string | null>>): SentForm;
}

export interface SentForm {
  /** The field Content-Type, with the boundary. */
  readonly contentType: string;
  /** Bytes. */
  readonly length: number;
  /** All of it, from the beginning, for each time that it is sent; bytes are lent until the source is resumed, or gives more. */
  open(): BodySource;
}
