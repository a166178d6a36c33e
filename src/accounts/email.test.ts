// E-mail addresses: what can be one, in the one form in which it is kept.
import { expect, test } from "bun:test";
import { checkEmail } from "./email.ts";
import { checkPersonName } from "./person-name.ts";

test.each([
  [" Ada@Example.COM ", "ada@example.com"],
  ["a.b+c_d'e@sub.example.org", "a.b+c_d'e@sub.example.org"],
  ["root@localhost", "root@localhost"],
  ["jürgen@bücher.example", "jürgen@bücher.example"],
  ["ju\u0308rgen@example.org", "jürgen@example.org"],
])("normalizes the address %p to %p", (typed, kept) => {
  expect(checkEmail(typed)).toBe(kept);
});

const refused = [
  ...["", "ada", "@example.com", "ada@", "a@b@c.org", "ada@example..com", ".ada@example.com", "ada.@example.com"],
  ...["ada@-x.org", "ada@x-.org", "a da@example.com", '"a"@example.com', "a,b@example.com", "Ada <ada@example.com>"],
  ...["ada@example.com\r\nBcc: all@example.com", "ada@example.com\0", "ada\u200b@example.com", "ada@exam\u202eple.com"],
  ...[`${"a".repeat(65)}@x.org`, `a@${"b".repeat(64)}.org`, `a@${"b.".repeat(130)}org`, "x".repeat(1_000_000)],
];

test.each(refused.map((typed) => [JSON.stringify(typed.slice(0, 40)), typed]))(
  "refuses the address %s",
  (_start, typed) => {
    expect(() => checkEmail(typed)).toThrow(/^email: must be one e-mail address/);
  },
);

test("accepts the longest allowed parts of an address", () => {
  const longest = `${"a".repeat(64)}@${"b".repeat(63)}.org`;
  expect(checkEmail(longest)).toBe(longest);
});

test("accepts a printable name of up to a hundred characters", () => {
  expect(checkPersonName("  Ada Lovelace ")).toBe("Ada Lovelace");
  expect(checkPersonName("é".repeat(100))).toHaveLength(100);
  for (const name of ["", "  ", "a\nb", "a\u202eb", "x".repeat(101), "x".repeat(1_000_000)]) {
    expect(() => checkPersonName(name)).toThrow(/^name: must be 1 to 100 printable characters/);
  }
});
