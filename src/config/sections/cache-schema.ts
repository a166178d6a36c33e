// The section `cache` of headrace.yaml.
import * as z from "zod";
import { field, mapping, oneOf, said, whole } from "../field.ts";

const bound = (doc: string, [least, most, usual]: readonly [number, number, number]) =>
  said(doc, whole([least, most], usual, "bytes")).default(usual);

export const cache = field(
  z.strictObject({
    store: said(
      "Where answers are stored: in the `memory` of each server process, or in `redis`, shared by all replicas and kept over restarts.",
      oneOf(["memory", "redis"]),
    ).default("memory"),
    max_bytes: bound(
      "Maximum bytes of answers in the memory of each server process, in addition to `limits.held_bytes`. The least recently used answers are removed first. Vectors of the semantic cache may use a quarter of this size on top.",
      [1_048_576, 68_719_476_736, 67_108_864],
    ),
    max_answer_bytes: bound("Maximum size of a cached answer in bytes.", [1_024, 67_108_864, 1_048_576]),
  }),
  mapping("The response cache, for models with `cache` in their `policies`."),
);
