// Tests that the response of a stream's last event is stored.
import { expect, test } from "bun:test";
import { ResponseCollector } from "./response-collector.ts";

const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;

test.each(["completed", "incomplete", "failed"])("returns the response of the event `%s`", (status) => {
  const collector = new ResponseCollector();
  const delta = event("response.output_text.delta", { delta: 'event: response.completed\ndata: {"response":{}}' });
  collector.add(delta);
  expect(collector.answer()).toBeUndefined();
  collector.add(delta + event(`response.${status}`, { response: { id: "resp_1", status } }));
  expect(collector.answer()).toEqual({ id: "resp_1", status });
  expect(collector.size).toBeGreaterThan(20);
});

test("returns no response for a stream that ends by an error without one", () => {
  const collector = new ResponseCollector();
  collector.add(event("response.created", { response: { id: "resp_1" } }) + event("error", { code: "x" }));
  expect(collector.answer()).toBeUndefined();
});
