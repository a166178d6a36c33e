// A form (multipart/form-data) as it is sent to an engine: as its client wrote it, but for the model's id.
import type { BodySource } from "../../base/bytes/body-source.ts";

/** A form that was read, and is kept until its request is over. */
export interface KeptForm {
  /** The form with `model` as the id of its model; as it came, where that is its own. */
  sentFor(model: string): SentForm;
}

export interface SentForm {
  /** The field Content-Type, with the boundary. */
  readonly contentType: string;
  /** Bytes. */
  readonly length: number;
  /** All of it, from the beginning, for each time that it is sent; bytes are lent until the source is resumed, or gives more. */
  open(): BodySource;
}
