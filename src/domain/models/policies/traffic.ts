// Describes how a share of a model's requests goes to another model: as a copy (shadow), or to be answered there
// (split).

export interface ShadowPolicy {
  /** Public id of the shadow model. */
  readonly model: string;
  /** Percent of the requests, above 0, up to 100. */
  readonly percent: number;
}

export interface SplitPart {
  /** Public id of the model that answers this share of the requests. */
  readonly model: string;
  /** Percent of the requests: above 0, and at most 100 for all parts together. The model itself answers the rest. */
  readonly percent: number;
}
