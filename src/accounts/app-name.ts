// Checks the name of an app: people who are asked to allow the app must not take the name for this server's own.
import { invalidRequest } from "../base/errors.ts";
import { keyName } from "../policy/manage/key-values.ts";

const ownName = "headrace";

/** Letters and digits that look like these ASCII ones and that NFKC does not map to them. */
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
/** Two letters that are read as a `d`, after the other replacements. */
const twoAsOne = /ci/g;

/** Returns the name as stored. Throws `invalid_request` if the name is invalid or resembles this server's own. */
export function appName(text: string): string {
  const name = keyName(text);
  if (!looksLikeOurs(name)) return name;
  throw invalidRequest(
    "name: must not be, or look like, the name of this server. Choose one that says whose app it is.",
  );
}

/** Reports whether people may take the name for this server's own, as a word, within one, or spread over several. */
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
 * Returns the name as people read it: without case, marks and invisible characters, and each letter replaced by the
 * ASCII one that it resembles.
 */
function skeletonOf(name: string): string {
  const seen = name.normalize("NFKD").replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, "");
  const letters = [...seen.normalize("NFKC").toLowerCase()].map((letter) => letterOf.get(letter) ?? letter);
  return letters.join("");
}
