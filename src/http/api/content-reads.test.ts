import { expect, test } from "bun:test";
import { principalFor } from "../../../tests/support/principal.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { answerInTurn } from "./content-reads.ts";

/** Reads for a key that may hold so many bytes; `held` lists what was asked for. */
function read(maxBytes: number, held: number[]) {
  const hold = (bytes: number) => {
    held.push(bytes);
    return bytes > maxBytes ? new GatewayError("rate_limit_exceeded", "The key holds too much.") : undefined;
  };
  const work = async () => Response.json({ text: "ÄÖÜ" }, { status: 203 });
  return answerInTurn({ req: { hold, left: new Cancellation() } }, principalFor({}), work);
}

test("an answer of stored content is held by its bytes, and given as it was", async () => {
  const held: number[] = [];
  const answer = (await read(100, held)) as Response;
  expect([answer.status, answer.headers.get("content-type"), await answer.json()]).toMatchObject([
    203,
    expect.stringContaining("application/json"),
    { text: "ÄÖÜ" },
  ]);
  expect(held).toEqual([17]);
});

test("an answer that its key may not hold is refused", async () => {
  await expect(read(10, [])).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});
