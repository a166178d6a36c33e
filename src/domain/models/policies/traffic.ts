// Shares of a model's requests that another model gets: beside it, unseen, or in its place.

export interface ShadowPolicy {
  /** Public id of the model that gets them as well. */
  readonly model: string;
  /** Above 0, up to 100. */
  readonly percent: number;
}

export interface SplitPart {
  /** Public id of the model that answers. */
  readonly model: string;
  /** Above 0; those of all parts are 100 at most, and what is left stays with the model itself. */
  readonly percent: number;
}
