// An app cannot call itself as this server is called, however the name is written.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../base/errors.ts";
import { appName, looksLikeOurs } from "./app-name.ts";

// hardening: A14
describe("app names that resemble the server's own", () => {
  test.each([
    "Headrace",
    "HEADRACE",
    " headrace ",
    "Headrace Login",
    "The Official Headrace App",
    "MyHeadrace2",
    "Head-Race",
    "H e a d r a c e",
    "h.e.a.d.r.a.c.e",
    "Headrace™",
    "Ｈｅａｄｒａｃｅ",
    "𝐇𝐞𝐚𝐝𝐫𝐚𝐜𝐞",
    "ⓗⓔⓐⓓⓡⓐⓒⓔ",
    "Héàdräçé",
    "Hea͏drace",
    "Hea\uFE0Fdrace",
    "Не\u0430dr\u0430\u0441\u0435",
    "Ηεαdrαcε",
    "ʜᴇᴀᴅʀᴀᴄᴇ",
    "ꓧꓰꓮꓓꓣꓮꓚꓰ",
    "h3adr4c3",
    "Heaclrace",
    "He@drace",
    "Неаԁгасе",
  ])("refuses the app name %p, which resembles the server's own", (name) => {
    expect(looksLikeOurs(name)).toBe(true);
    expect(() => appName(name)).toThrow(GatewayError);
    expect(() => appName(name)).toThrow(/^name: must not be, or look like, the name of this server/);
  });

  test.each(["He\u200Badrace", "He\u202Eadrace", "He\u0000adrace", "\u2066Headrace\u2069"])(
    "refuses the app name %p with invisible characters",
    (name) => {
      expect(looksLikeOurs(name)).toBe(true);
      expect(() => appName(name)).toThrow("name: must be 1 to 100 printable characters");
    },
  );

  // hardening: A14
  test("detects a name that resembles the server's own through case, separators and marks", () => {
    const separator = fc.constantFrom("", " ", "-", ".", "_", "·", "\u0301", "\u034F");
    const letters = [..."headrace"].map((letter) => fc.constantFrom(letter, letter.toUpperCase()));
    fc.assert(
      fc.property(fc.tuple(...letters), fc.array(separator, { minLength: 8, maxLength: 8 }), (name, between) => {
        expect(looksLikeOurs(name.map((letter, i) => letter + (between[i] ?? "")).join(""))).toBe(true);
      }),
    );
  });
});

test.each([
  "Notes",
  "Ahead Race Tracker",
  "Heads up",
  "Race head",
  "Заметки",
  "メモ帳",
  "☀️ Weather",
  "Head of Race",
  "Ηλιος",
])("keeps an app name unlike the server's own: %p", (name) => {
  expect(appName(` ${name} `)).toBe(name);
});
