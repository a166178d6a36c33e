// Places of a key are as many as it may have, are given back, and are nobody else's.
import { expect, test } from "bun:test";
import type { Principal } from "../domain/principal.ts";
import { OpenRequests } from "./open-requests.ts";

const of = (limitId: string, id = limitId) => ({ keys: [{ id, limitId }] }) as unknown as Principal;

function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("a key has its places and no more, each given back is there again, and other keys have their own", () => {
  const open = new OpenRequests(() => 2);
  const [first] = [open.enter(of("a")), open.enter(of("a"))];
  expect(refusal(() => open.enter(of("a")))).toMatchObject({
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
    message:
      "This key has 2 requests open, the most that it may have at the same time. Retry when one of them has ended.",
  });
  open.enter(of("b"));
  first?.release();
  open.enter(of("a"));
  expect(refusal(() => open.enter(of("a")))).toBeDefined();
});

test("the two keys of a rotation share their places", () => {
  const open = new OpenRequests(() => 1);
  open.enter(of("a", "old"));
  expect(refusal(() => open.enter(of("a", "new")))).toBeDefined();
});

test("another limit holds at once, and what is open beyond it only has to end", () => {
  let most = 3;
  const open = new OpenRequests(() => most);
  const places = [1, 2, 3].map(() => open.enter(of("a")));
  most = 1;
  for (const place of places) {
    expect(refusal(() => open.enter(of("a")))).toBeDefined();
    place.release();
  }
  open.enter(of("a"));
});

test("of keys without an open request no more than a thousand or two are remembered, of those with one all", () => {
  const open = new OpenRequests(() => 1);
  const busy = Array.from({ length: 5_000 }, (_, n) => open.enter(of(`busy${n}`)));
  for (let n = 0; n < 50_000; n++) open.enter(of(`${n}`)).release();
  expect(open.tracked).toBeWithin(5_000, 12_001);
  for (let n = 0; n < 5_000; n++) expect(refusal(() => open.enter(of(`busy${n}`)))).toBeDefined();
  for (const place of busy) place.release();
  for (let n = 0; n < 50_000; n++) open.enter(of(`${n}`)).release();
  expect(open.tracked).toBeLessThanOrEqual(1_000);
});
