// A form (multipart/form-data) for an engine, rewritten from the parsed form of the client.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** A parsed form, kept until its request is over. */
export interface KeptForm {
  /**
   * Returns the form with `model` as its model id. `edits` has new values, as JSON, for the fields of these names; null
   * empties the field.
   */
  sentFor(model: string, edits?: Readonly<Record<string, string | null>>): SentForm;
}

export interface SentForm {
  /** The Content-Type header with its boundary. */
  readonly contentType: string;
  /** Bytes. */
  readonly length: number;
  /** Reads the form from the beginning, for each sending. Bytes are valid until the source is resumed or emits more. */
  open(): BodySource;
}
