// Tests which parts of a model server's message operators of all accounts see.
import { expect, test } from "bun:test";
import { publicReason } from "./public-reason.ts";

test.each([
  "connect ECONNREFUSED 127.0.0.1:8000",
  "north: connect ECONNREFUSED ::1:8000",
  "getaddrinfo ENOTFOUND gpu.example.com",
  "getaddrinfo EAI_AGAIN gpu",
  "read ECONNRESET",
  "write EPIPE",
  "Failed to connect (ECONNREFUSED)",
  "no answer began in time",
  "CUDA out of memory",
  "model not loaded",
  "Incorrect API key provided",
])("shows the fault %#, which quotes no request", (reason) => {
  expect(publicReason(reason)).toBe(reason);
});

test.each([
  ["ERROR the patient has a fever", null],
  ["EXCEPTION in prompt: my secret", null],
  ["connect ECONNREFUSED because of the patient", null],
  ["ECONNRESET while sending my secret", "ECONNRESET …"],
  ["CUDA out of memory for the patient", "CUDA out of memory …"],
  ["The patient has a fever", null],
])("removes unknown words from %j", (reason, shown) => {
  expect(publicReason(reason)).toBe(shown);
});
