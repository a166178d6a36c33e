// A form (multipart/form-data) to send to an engine, made from the client's form.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** A client's parsed form, kept until its request is over. */
export interface KeptForm {
  /**
   * Returns the form with `model` as its model id. `edits` has new values (JSON) by field name; null empties the field.
   */
  sentFor(model: string, edits?: Readonly<Record<string, string | null>>): SentForm;
}

export interface SentForm {
  /** The Content-Type header with its boundary. */
  readonly contentType: string;
  /** Bytes. */
  readonly length: number;
  /**
   * Returns the form from its beginning. Call this for each attempt. Bytes are valid until the source is resumed or
   * sends more.
   */
  open(): BodySource;
}
