// What is cut out of an error because the request says it, and what is left.
import { expect, test } from "bun:test";
import { withoutEcho } from "./echo.ts";

const request = (content: string, more: object = {}) =>
  JSON.stringify({ model: "llama-3.1-8b-instruct", messages: [{ role: "user", content }], ...more });

const cut = (text: string, body: string) => withoutEcho(text, body, "llama-3.1-8b-instruct");

// hardening: O9
test("removes what a text repeats of a prompt, in any escaping and spacing", () => {
  const body = request('My "secret" plan\nis  \\ to reach the Nordpol, Schnee über alles');
  expect(cut('failed on: My "secret" plan is \\ to reach the Nordpol, it is too long', body)).toBe(
    "failed on: […]it is too long",
  );
  expect(cut('bad: MY "SECRET" PLAN', body)).toBe("bad: […]");
  expect(cut("at Schnee über alles!", body.replace("ü", "\\u00fc"))).toBe("at[…]!");
  expect(cut("CUDA out of memory", body)).toBe("CUDA out of memory");
});

test("keeps repeated member names, the model and short words", () => {
  const body = request("the model is fine", { max_tokens: 200_000, temperature: 3 });
  const said = "max_tokens is too large for llama-3.1-8b-instruct, temperature must be at most 2; the user was not";
  expect(cut(said, body)).toBe(said);
});

test("removes a name that the client invented like a prompt", () => {
  expect(cut("unknown field CANARYPROMPT", '{"CANARYPROMPT":1}')).toBe("unknown field […]");
});

test("removes echoes in time linear in the request for a hostile case", () => {
  const time = (length: number) => {
    const body = request("aaaaaaab".repeat(length / 8));
    const text = "a".repeat(1_000);
    const times = Array.from({ length: 5 }, () => {
      const startedMs = performance.now();
      cut(text, body);
      return performance.now() - startedMs;
    });
    return Math.min(...times);
  };
  time(8_000);
  expect(time(64_000)).toBeLessThan(30 * Math.max(time(8_000), 0.05));
});
