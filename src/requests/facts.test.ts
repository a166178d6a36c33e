// Tests which unknown members of a request count as possible longer limits of its answer.
import { expect, test } from "bun:test";
import { dialects } from "./dialects/dialects.ts";
import { mayOutlast } from "./facts.ts";

const limit = 100;
const longer = (members: object) => mayOutlast(dialects.chat, { max_tokens: limit, ...members }, limit);

test.each([
  { a_new_name: 101 },
  { a_new_name: "101" },
  { a_new_name: -1 },
  { a_new_name: 0 },
  { a_new_name: 1e300 },
  { options: { num_predict: 5 } },
  { parameters: [{ deep: { a: 101 } }] },
  { max_new_tokens: 5 },
  { auto_max_new_tokens: true },
  { enforce_limit: false },
  { ResponseLength: "long" },
  { max_output_tokens: 1 },
  { max_length: 50 },
  { amount_gen: 500 },
  { candidate_count: 8 },
  { num_return_sequences: 4 },
  ...["n_best", "beams", "samples", "Repeat", "replicas", "n_samples"].map((name) => ({ [name]: 8 })),
  { options: { n: 8 } },
  { options: [{ best_of: 8 }] },
  { lora: [{ max_tokens: 1e6 }] },
  { vllm_xargs: { n: 8 } },
  { custom_params: { a: 101 } },
])("finds a possibly longer limit in %j", (members) => {
  expect(longer(members)).toBe(true);
});

test.each([
  {},
  { a_new_name: 100 },
  { a_new_name: 0.5 },
  { a_new_name: "some text" },
  { a_new_name: true },
  { a_new_name: null },
  { max_new_tokens: null },
  { options: {} },
  { options: { label: "a", on: false } },
  { id_slot: -1 },
  { id_slot: 3, chat_template: "max", lora: {}, rid: "a", return_hidden_states: false },
  { do_sample: true, sample_rate: 0.5 },
  { temperature: 2, seed: 4_000 },
])("finds no longer limit in %j", (members) => {
  expect(longer(members)).toBe(false);
});
