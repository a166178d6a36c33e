// Checks the name of an OAuth app. People see the name when they allow the app, so it must not resemble the name
// Headrace.
import { invalidRequest } from "../base/errors.ts";
import { keyName } from "../policy/manage/key-values.ts";

const ownName = "headrace";

/** For each ASCII letter or digit: characters that look like it and that NFKC does not map to it. */
const alikes: Readonly<Record<string, string>> = {
  a: "аαɑᴀꭺ4@∂ꓮаӕ",
  b: "вʙβ8ꓐ",
  c: "сϲᴄⲥꓚꮯ¢",
  d: "ԁɗᴅꓓꭰժ",
  e: "еєεᴇ3€ꓰꭼҽɛ",
  g: "ɡցɢԍ",
  h: "һнհʜηꓧꮋћ",
  i: "іιı1!|lӏꓲɪ",
  j: "јϳ",
  k: "кκᴋꓗ",
  m: "мᴍꓟ",
  n: "пոռɴꓠ",
  o: "оοօ0ᴏꓳⲟσ",
  p: "рρᴘꓑⲣ",
  r: "гʀꓣꭱɾя",
  s: "ѕ5$ꜱꓢ",
  t: "тτᴛ7ꓔ",
  u: "υսᴜꓴ",
  v: "νѵᴠꓦ",
  x: "хχꓫ×",
  y: "уγүʏꓬ",
};
const letterOf = new Map(
  Object.entries(alikes).flatMap(([letter, others]) => [...others].map((other) => [other, letter] as const)),
);
/** `ci` looks like a `d` to people. This replacement is made after those of `alikes`. */
const twoAsOne = /ci/g;

/** Returns the name as stored. Throws `invalid_request` if the name is invalid or resembles this server's own. */
export function appName(text: string): string {
  const name = keyName(text);
  if (!looksLikeOurs(name)) return name;
  throw invalidRequest(
    "name: must not be, or look like, the name of this server. Choose one that says whose app it is.",
  );
}

/** Reports whether the name contains or resembles this server's name, within a word or spread over several words. */
export function looksLikeOurs(name: string): boolean {
  const words = skeletonOf(name)
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
  const forms = [words, words.map((word) => word.replace(twoAsOne, "d"))];
  return forms.some((form) =>
    form.some((word, i) => word.includes(ownName) || form.slice(i).join("").startsWith(ownName)),
  );
}

/**
 * Returns the name as people read it: in lower case, without marks and invisible characters, and with every look-alike
 * replaced by its ASCII letter.
 */
function skeletonOf(name: string): string {
  const seen = name.normalize("NFKD").replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, "");
  const letters = [...seen.normalize("NFKC").toLowerCase()].map((letter) => letterOf.get(letter) ?? letter);
  return letters.join("");
}
