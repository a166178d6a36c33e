// Tests which tags a request gets: always those of its keys, those in its header within limits, and those of its body
// if configured.
import { beforeEach, expect, test } from "bun:test";
import fc from "fast-check";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { accountFor, principalFor } from "../../tests/support/principal.ts";
import { generateApiKey } from "../domain/api-key.ts";
import type { Quota } from "../domain/limits/limits.ts";
import { isTag, type TagSettings } from "../domain/usage/request-tags.ts";
import { RequestTags, type SaidOfRequest } from "./request-tags.ts";

const nothing: SaidOfRequest = { endUser: undefined, metadata: undefined };
let settings: TagSettings;
let clock: ReturnType<typeof manualClock>;
let tags: RequestTags;

beforeEach(() => {
  settings = { metadata: [], user: false, maxADay: 1_000 };
  clock = manualClock(Date.UTC(2026, 10, 20, 10) / 1000);
  tags = new RequestTags({ settings: () => settings, clock });
});

const ofKey = (...own: string[]) => ({ ...principalFor(), tags: own });

test("gives a request no tags without tags of its key or a header, whatever its body says", () => {
  const said = { endUser: "ada", metadata: { team: "a", user_id: "x" } };
  expect(tags.of(principalFor(), null, said)).toBeUndefined();
  expect(tags.of(principalFor(), " , ,", said)).toBeUndefined();
});

test("tags end users that have a budget, replaces ids that are no tags, and shares one tag among too many", () => {
  const quotas = [{ unit: "usd", amount: 1, per: "day", window: "calendar" }] as const;
  const of = (endUser: string, byDefault: boolean) => {
    const endUsers = { default: byDefault ? quotas : null, named: { "user:ada": quotas } };
    const principal = { ...principalFor(), account: accountFor({ endUsers }) };
    return tags.of(principal, null, { endUser, metadata: undefined });
  };
  settings = { ...settings, maxADay: 2 };
  expect([of("ada", false), of("bob", false), of("__proto__", false)]).toEqual([["user:ada"], undefined, undefined]);
  expect(of("bob", true)).toEqual(["user:bob"]);
  expect(of("Ünï", true)?.[0]).toMatch(/^user:sha256:[0-9a-f]{64}$/);
  expect([of("eve", true), of("ada", true), of("bob", true)]).toEqual([["user:other"], ["user:ada"], ["user:bob"]]);
});

test("always applies the tags of a key, to which a header adds", () => {
  expect(tags.of(ofKey("team-a"), null, nothing)).toEqual(["team-a"]);
  expect(tags.of(ofKey("team-a"), "", nothing)).toEqual(["team-a"]);
  expect(tags.of(ofKey("team-a"), "team-b, team-a,x:1", nothing)).toEqual(["team-a", "team-b", "x:1"]);
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("a", "b", "", " ", "c:1")),
      fc.uniqueArray(fc.constantFrom("a", "k")),
      (given, own) => {
        const found = tags.of(ofKey(...own), given.join(","), nothing);
        const all = new Set([...own, ...given.filter((tag) => tag.trim() !== "")]);
        expect(new Set(found)).toEqual(all);
        expect(found?.length ?? 0).toBe(own.length > 0 || all.size > 0 ? all.size : 0);
      },
    ),
  );
});

test("refuses an invalid tag or too many tags in a header, naming the header", () => {
  const refusal = (header: string) => {
    try {
      return tags.of(principalFor(), header, nothing);
    } catch (error) {
      return (error as { param: string; message: string }).message;
    }
  };
  for (const wrong of ["a b", "-a", "é", 'a"b', "a".repeat(129), "a;b", "asked:model", "gateway:shadow"]) {
    expect(refusal(`ok, ${wrong}`)).toStartWith("x-headrace-tags: must be tags separated by commas, each of 1 to 128 ");
  }
  expect(refusal("a".repeat(128))).toHaveLength(1);
  expect(refusal("asked, gateway, gateways:x")).toHaveLength(3);
  const many = Array.from({ length: 11 }, (_, i) => `t${i}`);
  expect(refusal(many.join(","))).toBe("x-headrace-tags: must have at most 10 tags (got 11).");
  expect(refusal(many.slice(1).join(","))).toHaveLength(10);
});

test("turns configured metadata members, and optionally the end user, into tags", () => {
  settings = { ...settings, metadata: ["team", "size", "missing"], user: true };
  const metadata = { team: "a", size: 3, other: "x", missing: "" };
  expect(tags.of(principalFor(), "h", { endUser: "ada@example.com", metadata })).toEqual([
    ...["h", "team:a", "size:3", "user:ada@example.com"],
  ]);
  expect(tags.of(principalFor(), null, nothing)).toBeUndefined();
});

test("counts a body value that cannot be a tag as other", () => {
  settings = { ...settings, metadata: ["team"], user: true };
  fc.assert(
    fc.property(fc.string(), fc.jsonValue(), (endUser, team) => {
      for (const tag of tags.of(principalFor(), null, { endUser, metadata: { team } }) ?? []) {
        expect(isTag(tag)).toBe(true);
        expect(tag).toMatch(/^(team|user|other)/);
      }
    }),
  );
  const said = { endUser: "u".repeat(200), metadata: { team: { a: 1 } } };
  expect(tags.of(principalFor(), null, said)).toEqual(["team:other", "user:other"]);
});

test("refuses an API key as a tag in the header, and counts it as other in the body", () => {
  const key = generateApiKey("live");
  settings = { ...settings, user: true };
  let message = "";
  try {
    tags.of(principalFor(), `ok,x:${key}`, nothing);
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message).toStartWith("x-headrace-tags: must be tags");
  expect(message).not.toContain(key);
  expect(tags.of(principalFor(), null, { endUser: key, metadata: undefined })).toEqual(["user:other"]);
});

test("counts further tags of an account on one day as other, except those of keys and quotas", () => {
  settings = { ...settings, maxADay: 3 };
  const filter = { tag: "late" };
  const principal = { ...ofKey("own"), limits: { ...principalFor().limits, windows: [{ filter } as Quota] } };
  expect(tags.of(principal, "a, b, c", nothing)).toEqual(["own", "a", "b", "c"]);
  expect(tags.of(principal, "d, e, late, a, own", nothing)).toEqual(["own", "other", "late", "a"]);
  const another = { ...principal, account: { ...principal.account, id: "acct_other" } };
  expect(tags.of(another, "d", nothing)).toEqual(["own", "d"]);
  clock.jump(86_400);
  expect(tags.of(principal, "d", nothing)).toEqual(["own", "d"]);
});
